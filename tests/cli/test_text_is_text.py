"""What comes from a log is shown and exported as text: no terminal, browser or spreadsheet obeys it."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.cli.terminal import in_one_line
from cuolr.data.printable_text import printable
from cuolr.data.spreadsheet_text import row_without_formulas, without_formulas
from cuolr.policies.model_folder import save_policy
from cuolr.policies.random_policy import RandomPolicy
from tests.cli.conftest import Result, Run

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m"
OVERRIDE = "\u202etxt.exe"
SCRIPT = "<script>alert(1)</script>"
MARKUP = "[red]$x^{[/red]"
FORMULA = '=HYPERLINK("http://example.org?"&A1)'
QUERIES = [ESCAPES, OVERRIDE, SCRIPT, FORMULA]
DOCUMENTS = ["@SUM(1)", f"+1+{MARKUP}", "-2-cmd", "-7", "\nerror: forged"]
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Sessions with such ids and contexts, some of which have to be dropped."""
    rng = np.random.default_rng(1)
    rows = [
        {
            "query_id": QUERIES[session % len(QUERIES)],
            "session_id": f"{ESCAPES}{OVERRIDE}\n{session}",
            "position": place + 1,
            "doc_id": DOCUMENTS[document],
            "click": -7 if session == 0 and place == 0 else int(rng.random() < 0.5),
            "device": [SCRIPT, MARKUP, ESCAPES][session % 3],
        }
        for session in range(150)
        for place, document in enumerate(rng.permutation(len(DOCUMENTS)))
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "clicks.csv")
    return tmp_path / "clicks.csv"


@pytest.fixture
def features(tmp_path: Path) -> Path:
    pairs = [(query, document) for query in QUERIES for document in DOCUMENTS]
    table = pl.DataFrame(pairs, schema=["query_id", "doc_id"], orient="row")
    table.with_columns(x=pl.int_range(pl.len()).cast(pl.Float64)).write_csv(tmp_path / "features.csv")
    return tmp_path / "features.csv"


@pytest.fixture
def log(table: Path, features: Path, run: Run, tmp_path: Path) -> Path:
    done = run("import-log", table, "--features", features, "--context", "device", "--out", tmp_path / "LOG")
    check(done)
    assert "forged" not in [line.partition(":")[2].strip() for line in done.err.splitlines()]
    return tmp_path / "LOG"


def check(done: Result, status: int = 0) -> None:
    assert done.status == status, done.err
    for text in (done.out, done.err):
        assert not OBEYED.search(text), text
        assert not any(line.startswith("error: forged") for line in text.splitlines())


def test_every_verb_that_reads_a_log_shows_its_ids_as_text(log: Path, run: Run, tmp_path: Path) -> None:
    check(run("log-info", log))
    check(run("log-info", log, "--json"))
    check(run("fit-clicks", log, "--click-models", "pbm", "--samples", 0))
    check(run("fit-clicks", log, "--context", f"device={ESCAPES}?"), status=2)
    check(run("merge-logs", log, log, "--out", tmp_path / "merged"), status=2)
    check(run("delete-sessions", log, "--session-id", ESCAPES), status=2)
    check(run("propensity", log, "--json"), status=2)
    check(run("judgments", log, "--out", tmp_path / "j.qrels", "--scale", "0-3", "--min-examinations", 0), status=2)


@pytest.mark.thorough
def test_every_verb_that_reads_a_model_and_a_log_shows_its_ids_as_text(log: Path, run: Run, tmp_path: Path) -> None:
    check(run("count", log, "--out", tmp_path / "counts"))
    model = tmp_path / "TREES"
    check(run("train", log, "--learner", "lightgbm", "--steps", 3, "--no-student", "--out", model))
    check(run("assess", model, log), status=11)  # too few sessions to say more than keep
    check(run("explain", model, log, "--query", ESCAPES))
    check(run("explain", model, log, "--query", f"{ESCAPES}?"), status=2)
    check(run("browse", model, log, "--static", tmp_path / "page.html"))
    assert SCRIPT not in (tmp_path / "page.html").read_text()
    check(run("export", model, "--to", "elasticsearch-ltr", "--out", tmp_path / "model.json"))
    check(run("distil", model, "--data", log, "--to", "linear", "--out", tmp_path / "STUDENT"))


def test_a_strict_import_names_the_problem_in_one_line(table: Path, features: Path, run: Run, tmp_path: Path) -> None:
    done = run("import-log", table, "--features", features, "--strict", "--out", tmp_path / "LOG")
    check(done, status=2)
    assert len(done.err.splitlines()) == 1


def test_a_page_holds_no_element_of_the_log(log: Path, run: Run, tmp_path: Path) -> None:
    check(run("log-info", log, "--html", tmp_path / "log.html"))
    page = (tmp_path / "log.html").read_text()
    assert SCRIPT not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("name", ["j.csv", "quepid.csv", "rankings.csv"])
def test_no_cell_of_an_exported_table_is_a_formula(name: str, log: Path, features: Path, run: Run) -> None:
    out = log.with_name(name)
    if name == "rankings.csv":
        save_policy(RandomPolicy(1), log.with_name("MODEL"))
        check(run("rank", log.with_name("MODEL"), "--candidates", features, "--out", out))
    else:
        quepid = ["--format", "quepid"] if name == "quepid.csv" else []
        check(run("judgments", log, "--out", out, "--min-examinations", 0, *quepid))
    cells = list(_cells(out))
    assert {"-7", f"'{FORMULA}", "'@SUM(1)", SCRIPT} <= set(cells)
    assert not [cell for cell in cells if cell.lstrip()[:1] in tuple("=+@")]
    assert not OBEYED.search(out.read_text())


def test_no_id_of_a_trec_run_is_obeyed_by_a_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "documents.txt").write_text(f"0 qid:{ESCAPES} 1:1 #docid = {OVERRIDE}\n")
    save_policy(RandomPolicy(1), tmp_path / "MODEL")
    check(run("rank", tmp_path / "MODEL", "--candidates", tmp_path / "documents.txt", "--out", tmp_path / "o.run"))
    shown = in_one_line(ESCAPES), in_one_line(OVERRIDE)
    assert (tmp_path / "o.run").read_text() == f"{shown[0]} Q0 {shown[1]} 1 1 cuolr\n"


def test_json_for_other_systems_has_the_ids_as_they_are(log: Path, run: Run) -> None:
    out = log.with_name("j.json")
    check(run("judgments", log, "--out", out, "--min-examinations", 0))
    assert {rated["query"] for rated in json.loads(out.read_text())["judgmentRatings"]} == set(QUERIES)


def _cells(file: Path) -> Iterator[str]:
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.reader(lines):
            yield from row


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("=1", "'=1"),
        (" =1", "' =1"),
        ("\t=1", "'\t=1"),
        ("+a", "'+a"),
        ("-a", "'-a"),
        ("@a", "'@a"),
        ("\uff1dA1", "'\uff1dA1"),
        ("-1.5e3", "-1.5e3"),
        ("+49", "+49"),
        ("a=1", "a=1"),
        ("", ""),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202etxt", "\\u202etxt"),
        ("a\r=1", "a\\r=1"),
    ],
)
def test_formulas_have_an_apostrophe_and_numbers_have_none(text: str, harmless: str) -> None:
    frame = pl.DataFrame({"id": [text, None], "n": [-1, 2]}, schema={"id": pl.String, "n": pl.Int64})
    assert without_formulas(frame).to_dict(as_series=False) == {"id": [harmless, None], "n": [-1, 2]}
    assert row_without_formulas({"id": text, "n": -1.0, "none": None}) == {"id": harmless, "n": -1.0, "none": None}


def test_text_of_any_language_is_shown_as_it_is() -> None:
    for text in ("größe 10 €", "كتاب", "本", "می\u200cخواهم", "a\tb"):
        assert printable(text) == in_one_line(text) == text
    assert in_one_line("a\nb\r\x1b\u2066") == "a\\nb\\r\\x1b\\u2066"
    assert printable("a\nb") == "a\nb"
    assert printable("\udc80") == "\\udc80"
