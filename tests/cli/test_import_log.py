import json
from pathlib import Path

import pytest

from cuolr.logs.log_folder import load_click_log
from tests.cli.conftest import Run

FEATURES = "1 qid:q 1:5 2:NULL #docid = a\n0 qid:q 1:6 2:3 #docid = b\n0 qid:q 1:7 2:4 #docid = c\n"
TABLE = "query_id,session_id,position,doc_id,click\nq,s,1,b,0\nq,s,2,a,1\n"


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Three documents of one query."""
    path = tmp_path / "features.txt"
    path.write_text(FEATURES)
    return path


def test_an_imported_log_can_be_read_and_looked_at(run: Run, features: Path, tmp_path: Path) -> None:
    # Names that are patterns to some readers, with another file that they match.
    (tmp_path / "l[1] ?.csv").write_text(TABLE)
    (tmp_path / "l1 x.csv").write_text("nothing")
    out = tmp_path / "o [x]*"
    result = run("import-log", tmp_path / "l[1] ?.csv", "--features", features, "--out", out)
    assert (result.status, result.out) == (0, "")
    log = load_click_log(out)
    assert log.ranking.tolist() == [[1, 0]]
    assert log.clicks.tolist() == [[0, 1]]
    assert log.candidates.features.tolist() == [[5, 0], [6, 3], [7, 4]]
    assert run("log-info", out).status == 0


def test_letor_features_are_read_as_the_flags_say(run: Run, features: Path, tmp_path: Path) -> None:
    features.write_text(FEATURES.replace(" 1:", " 0:").replace(" 2:", " 1:"))
    (tmp_path / "log.csv").write_text(TABLE)
    command = ("import-log", tmp_path / "log.csv", "--features", features, "--out", tmp_path / "out")
    result = run(*command)
    assert result.status == 2
    assert result.err.startswith(f"error: {features}:1: ")
    assert run(*command, "--zero-based", "--missing", "minimum").status == 0
    assert load_click_log(tmp_path / "out").candidates.features.tolist() == [[5, 3], [6, 3], [7, 4]]


def test_problems_are_told_one_by_one_and_nothing_is_written(run: Run, features: Path, tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text(TABLE.replace("a,1", "x,-2"))
    result = run("import-log", table, "--features", features, "--out", tmp_path / "out", "--strict")
    assert (result.status, result.out) == (2, "")
    assert result.err.splitlines() == [
        f"error: {table}: row 2: doc_id: 'x' is not among the documents of query 'q' in the features",
        f"error: {table}: row 2: click: expected 0 or 1, found '-2'",
    ]
    assert not (tmp_path / "out").exists()


def test_lists_are_cut_and_an_existing_log_is_replaced_when_told(run: Run, features: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(TABLE)
    command = ("import-log", tmp_path / "log.csv", "--features", features, "--out", tmp_path / "out")
    assert run(*command).status == 0
    assert "already exists" in run(*command, "--k", 1).err
    assert load_click_log(tmp_path / "out").k == 2
    assert run(*command, "--k", 1, "--overwrite").status == 0
    assert load_click_log(tmp_path / "out").ranking.tolist() == [[1]]


# What is repaired and dropped, and how that is told.


def write_days(folder: Path) -> None:
    """Two days of 30 sessions each, with other column names, positions from 0, and a few problems."""
    for day in (1, 2):
        rows = ["query_id,session_id,rank,product_id,click"]
        for session in range(30):
            gap, bad, gone = session == 3, session == 5 and day == 2, session == 7
            rows += [
                f"q,{day}-{session:02},0,a,{-5 if bad else 1}",
                f"q,{day}-{session:02},{1 + gap},{'x' if gone else 'b'},0",
            ]
        (folder / f"day-{day}.csv").write_text("\n".join(rows) + "\n")


COLUMNS = ("--column", "doc_id=product_id", "--column", "position=rank")


def test_several_files_are_imported_with_a_report(run: Run, features: Path, tmp_path: Path) -> None:
    write_days(tmp_path)
    out = tmp_path / "out"
    result = run("import-log", tmp_path / "day-*.csv", "--features", features, "--out", out, *COLUMNS)
    assert result.status == 0, result.err
    assert result.err.splitlines()[0] == "note: positions start at 0 in the table"
    table = [line.split() for line in result.out.splitlines()]
    assert ["read", "60", "120", "59"] in table
    assert ["kept", "59", "116", "59"] in table
    assert f"{tmp_path}/day-2.csv: row 11: click: expected 0 or 1, found '-5'" in result.out
    assert f"{tmp_path}/day-1.csv: row 7: session '1-03': a gap between positions 0 and 2" in result.out
    log = load_click_log(out)
    assert log.sessions == 59
    assert log.page_position is not None
    assert log.page_position[3].tolist() == [0, 2]
    source = json.loads((out / "meta.json").read_text())["source"]
    assert source["tables"] == [f"{tmp_path}/day-1.csv", f"{tmp_path}/day-2.csv"]
    assert source["import"]["kept"] == {"sessions": 59, "impressions": 116, "clicks": 59}
    assert "1-03" not in str(source)


def test_a_dry_run_writes_nothing(run: Run, features: Path, tmp_path: Path) -> None:
    write_days(tmp_path)
    command = ("import-log", tmp_path / "day-1.csv", tmp_path / "day-2.csv", "--features", features, *COLUMNS)
    assert "--out: expected the folder" in run(*command).err
    before = sorted(tmp_path.iterdir())
    result = run(*command, "--dry-run", "--json", "--out", tmp_path / "out")
    assert result.status == 0
    printed = json.loads(result.out)
    assert "out" not in printed
    assert printed["report"]["first_position"] == 0
    assert [(found["reason"], found["sessions"]) for found in printed["report"]["dropped"]] == [
        ("click that is not 0 or 1", 1),
        ("document without features", 0),
    ]
    assert sorted(tmp_path.iterdir()) == before


def test_too_much_that_is_dropped_stops_the_import(run: Run, features: Path, tmp_path: Path) -> None:
    write_days(tmp_path)
    command = ("import-log", tmp_path / "day-*.csv", "--features", features, *COLUMNS, "--max-dropped", "1%")
    result = run(*command, "--out", tmp_path / "out")
    assert (result.status, result.out) == (2, "")
    first, second, *_ = result.err.splitlines()
    assert first == "error: 2 files: 3.3% of the impressions cannot be used, more than --max-dropped 0.01 allows"
    assert second == "error: dropped: click that is not 0 or 1: 1 session, 2 impressions"
    assert not (tmp_path / "out").exists()
    result = run(*command, "--dry-run")
    assert result.status == 2
    assert "click that is not 0 or 1" in result.out
    assert len(result.err.splitlines()) == 2


def test_a_missing_column_is_told_with_the_flag_that_names_it(run: Run, features: Path, tmp_path: Path) -> None:
    write_days(tmp_path)
    result = run("import-log", tmp_path / "day-1.csv", "--features", features, "--dry-run")
    assert result.status == 2
    assert "column 'doc_id' is missing (did you mean --column doc_id=product_id?)" in result.err


def test_missing_columns_of_the_log_and_of_its_features_are_told_together(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query_id,session_id,position,click\n1,a,1,0\n")
    (tmp_path / "features.csv").write_text("query_id,price\n1,2.5\n")
    result = run("import-log", tmp_path / "log.csv", "--features", tmp_path / "features.csv", "--dry-run")
    assert result.status == 2
    features, log = result.err.splitlines()
    assert features.startswith(f"error: {tmp_path / 'features.csv'}: column 'doc_id' is missing")
    assert log.startswith(f"error: {tmp_path / 'log.csv'}: column 'doc_id' is missing")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--max-dropped", "much"), "--max-dropped: expected a share such as 5% or 0.05, found 'much'"),
        (("--max-dropped", "500"), "--max-dropped: expected a share such as 5% or 0.05, found '500'"),
        (("--column", "doc_id"), "--column: expected NAME=COLUMN, such as doc_id=product_id, found 'doc_id'"),
    ],
)
def test_a_flag_that_makes_no_sense_is_one_line(
    flags: tuple[str, str], problem: str, run: Run, features: Path, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text(TABLE)
    result = run("import-log", tmp_path / "log.csv", "--features", features, "--dry-run", *flags)
    assert (result.status, result.err) == (2, f"error: {problem}\n")


def test_where_positions_start_can_be_told(run: Run, features: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(TABLE)
    out = tmp_path / "out"
    command = ("import-log", tmp_path / "log.csv", "--features", features, "--out", out, "--first-position", "0")
    assert run(*command).status == 0
    page_position = load_click_log(out).page_position
    assert page_position is not None
    assert page_position.tolist() == [[1, 2]]


def test_a_reward_and_a_context_are_imported_and_described(run: Run, features: Path, tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text(
        "query_id,session_id,position,doc_id,click,bought,device\n"
        "q,1,1,a,1,,phone\nq,1,2,b,0,1,phone\nq,2,1,b,3,2,\nq,2,2,a,0,0,\n"
    )
    command = ("import-log", table, "--features", features, "--context", "device", "--out", tmp_path / "out")
    result = run(*command, "--reward", "click=1,bought=5", "--json")
    repaired = {found["reason"]: found["sessions"] for found in json.loads(result.out)["report"]["repaired"]}
    assert repaired == {
        "click count above 1, taken as a click": 1,
        "reward without a click, taken as clicked": 1,
    }
    log = load_click_log(tmp_path / "out")
    assert log.reward is not None
    assert log.reward.tolist() == [[1, 5], [3 + 2 * 5, 0]]
    assert log.context["device"].tolist() == ["phone", "(missing)"]
    info = json.loads(run("log-info", tmp_path / "out", "--json").out)
    assert info["reward_weights"] == {"click": 1, "bought": 5}
    assert info["reward_per_session"] == (1 + 5 + 13) / 2
    assert info["share_of_clicks_rewarded"] == 1
    assert info["context"] == {"device": {"(missing)": 1, "phone": 1}}
    shown = run("log-info", tmp_path / "out").out
    assert "click=1, bought=5" in shown
    assert "(missing) 1, phone 1" in shown


def test_a_reward_that_cannot_be_read_is_one_line(run: Run, features: Path, tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text(TABLE)
    result = run("import-log", table, "--features", features, "--reward", "buys=1", "--out", tmp_path / "out")
    assert result.status == 2
    assert result.err.startswith(f"error: {table}: column 'buys' of the reward is missing; found: query_id")
    assert len(result.err.splitlines()) == 1
    table.write_text(TABLE.replace("a,1", "a,3"))
    result = run("import-log", table, "--features", features, "--strict", "--out", tmp_path / "out")
    assert result.err == (
        f"error: {table}: row 2: click: expected 0 or 1, found '3'; to count clicks, use them as the reward "
        "(--reward click=1)\n"
    )
    result = run("import-log", table, "--features", features, "--reward", "click=x", "--out", tmp_path / "out")
    assert result.err.startswith("error: --reward: expected a number after '=', such as purchase=10, found 'click=x'")
    result = run("import-log", table, "--features", features, "--context", "grade", "--out", tmp_path / "out")
    assert result.err.startswith("error: --context: 'grade' looks like a relevance label")


def test_the_flag_of_a_column_can_be_pasted_into_a_shell(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(TABLE.replace("query_id", "Search Term").replace("session_id", "RequestID"))
    (tmp_path / "features.csv").write_text("query_id,doc_id,avg. rating (1-5)\nq,a,3\nq,b,4\n")
    command = ("import-log", tmp_path / "log.csv", "--out", tmp_path / "out")
    query, session = run(*command).err.splitlines()
    assert "(did you mean --column query_id='Search Term'?)" in query
    assert "if it is called otherwise, say --column session_id=NAME" in session
    named = ("--column", "query_id=Search Term", "--column", "session_id=RequestID")
    refused = run(*command, *named, "--features", tmp_path / "features.csv").err
    assert "say --allow-column 'avg. rating (1-5)', otherwise leave it out with --drop-column 'avg. rating" in refused


@pytest.mark.parametrize(
    ("column", "noted"),
    [("ts", True), ("Date", True), ("shown_at", True), ("timestamp", False), ("device", False)],
)
def test_a_column_that_seems_to_have_the_timestamps_is_named(
    run: Run, features: Path, tmp_path: Path, column: str, noted: bool
) -> None:
    table = tmp_path / "log.csv"
    rows = [f"{row},2026-10-0{number}" for number, row in enumerate(TABLE.split()[1:], start=1)]
    table.write_text("\n".join([f"{TABLE.split()[0]},{column}", *rows, ""]))
    command = ("import-log", table, "--features", features, "--out", tmp_path / "out")
    result = run(*command)
    note = f"note: the log has no timestamps; if column '{column}' has them, say --column timestamp={column}\n"
    assert (result.status, result.out, note in result.err) == (0, "", noted)
    named = run(*command, "--overwrite", "--column", f"timestamp={column}")
    assert "note" not in named.err if noted else True
