"""Look-alikes of public logs of web search: Yandex, the copies for CLAX, TianGong-ST, and Baidu-ULTR."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.logs.importing.formats.baidu_ultr_uva import CLASSICAL, DIMENSIONS, EMBEDDING
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import TooManyDroppedError
from cuolr.logs.importing.importer import SourceCounts


def query(session: int, time: int, query_id: int, *urls: int) -> str:
    return "\t".join(map(str, (session, time, "Q", query_id, 0, *urls)))


def click(session: int, time: int, url: int) -> str:
    return "\t".join(map(str, (session, time, "C", url)))


ANY = ImportOptions(max_dropped=1)
TEN = range(11, 21)
ACTIONS = [
    query(0, 0, 8, *TEN),
    click(0, 5, 13),
    click(0, 9, 13),  # again
    query(0, 20, 9, 31, 13),  # shorter; shows 13, too
    click(0, 25, 13),  # on the second list
    click(0, 26, 11),  # back on the first
    click(1, 3, 11),  # before any list of its session
    query(1, 4, 8, *reversed(TEN)),
]


def test_clicks_belong_to_the_latest_list_that_shows_the_url(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("\n".join(ACTIONS) + "\n")
    log, report = import_log_with_report(tmp_path / "log.txt", options=ANY, format="yandex")
    assert log.sessions == 3
    assert log.clicks[:, :3].tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert int(log.clicks.sum()) == 3
    assert log.where.sum(axis=1).tolist() == [10, 2, 10]
    assert log.query.tolist() == [0, 1, 0]
    assert isinstance(report.source, SourceCounts)
    assert list(report.source.counts.values()) == [3, 5, 1, 1, 0]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    actions=st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True), st.booleans()),
        min_size=1,
        max_size=25,
    )
)
def test_clicks_are_where_a_plain_search_finds_them(actions: list[tuple[int, list[int], bool]], tmp_path: Path) -> None:
    actions = [(0, [1, 2], True), *actions]
    lines, lists, expected = [], [], set()
    for time, (session, urls, is_query) in enumerate(actions):
        if is_query:
            lines.append(query(session, time, 7, *urls))
            lists.append((session, urls))
            continue
        lines.append(click(session, time, urls[0]))
        shown = [i for i, (other, there) in enumerate(lists) if other == session and urls[0] in there]
        if shown:
            expected.add((shown[-1], lists[shown[-1]][1].index(urls[0])))
    (tmp_path / "log.txt").write_text("\n".join(lines))
    log, _ = import_log_with_report(tmp_path / "log.txt", options=ANY, format="yandex")
    rows, positions = log.clicks.nonzero()
    assert set(zip(rows.tolist(), positions.tolist(), strict=True)) == expected


def test_lines_that_are_no_action_are_counted(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("\n".join([*ACTIONS, "1\t2\tX\t3", "nothing"]))
    _, report = import_log_with_report(tmp_path / "log.txt", options=ANY, format="yandex")
    assert isinstance(report.source, SourceCounts)
    assert report.source.counts["lines that are no action: dropped"] == 2
    # 2 of 10 lines; 1 of 4 clicks, as the one that repeats another is not counted.
    with pytest.raises(TooManyDroppedError, match=r"25.0% of the clicks cannot be used"):
        import_log_with_report(tmp_path / "log.txt", options=ImportOptions(max_dropped=0.24), format="yandex")
    with pytest.raises(InputError, match="dropped: lines that are no action: 2 lines"):
        import_log_with_report(tmp_path / "log.txt", options=ImportOptions(strict=True), format="yandex")


def test_a_file_without_lists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(click(1, 3, 11))
    with pytest.raises(InputError, match="expected query actions 'Q'"):
        import_log_with_report(tmp_path / "log.txt", options=ANY, format="yandex")


SESSIONS = pl.DataFrame(
    {"query_id": [7, 8, 7], "query_doc_ids": [[11, 12], [21, 22, 23], [12, 13]], "clicks": [[0, 1], [1, 0, 0], [0, 0]]}
)


def test_a_row_becomes_a_list(tmp_path: Path) -> None:
    SESSIONS.write_parquet(tmp_path / "train.parquet")
    log, report = import_log_with_report(tmp_path / "train.parquet", format="clax")
    assert log.candidates.query_ids.tolist() == ["7", "8"]
    assert log.query.tolist() == [0, 1, 0]
    assert log.ranking.tolist() == [[0, 1, -1], [0, 1, 2], [1, 2, -1]]
    assert log.clicks.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert (report.repaired, report.dropped) == ((), ())


def test_without_query_ids_documents_that_share_lists_are_of_one_query(tmp_path: Path) -> None:
    SESSIONS.drop("query_id").write_parquet(tmp_path / "train.parquet")
    log, report = import_log_with_report(tmp_path / "train.parquet", format="clax")
    assert log.candidates.n_queries == 2
    assert log.query[0] == log.query[2] != log.query[1]
    assert report.notes[0].startswith("assumed: documents that are shown in one list")


def test_padding_positions_and_features_are_taken(tmp_path: Path) -> None:
    pl.DataFrame(
        {
            "query_id": [1, 1],
            "query_doc_ids": [[5, 6, 0], [6, 5, 9]],
            "clicks": [[1, 0, 0], [0, 0, 1]],
            "mask": [[True, True, False], [True, True, True]],
            "positions": [[1, 3, 0], [1, 2, 4]],
            "query_doc_features": [[[0.1, 1.0], [0.2, 2.0], [0.0, 0.0]], [[0.2, 2.0], [0.1, 1.0], [0.3, 3.0]]],
        }
    ).write_parquet(tmp_path / "uva.parquet")
    log, report = import_log_with_report(tmp_path / "uva.parquet", format="clax")
    assert log.page_position is not None
    assert log.page_position.tolist() == [[0, 2, -1], [0, 1, 3]]
    assert log.candidates.features.ravel() == pytest.approx([0.1, 1.0, 0.2, 2.0, 0.3, 3.0])
    assert report.kept.impressions == 5


def test_another_table_is_refused(tmp_path: Path) -> None:
    SESSIONS.rename({"query_doc_ids": "docs"}).write_parquet(tmp_path / "train.parquet")
    with pytest.raises(InputError, match="columns missing: query_doc_ids; found: query_id, docs, clicks"):
        import_log_with_report(tmp_path / "train.parquet", format="clax")


LINES = [
    "5\t30\t[101, 102, 103]\t[1, 1, 19]\t[0, 1, 0]",
    "5\t31\t[201, 101]\t[1, 1]\t[0, 0]",  # the same session asks again
    "6\t30\t[103, 101, 102]\t[1, 1, 1]\t[1, 1, 0]",
]


def test_each_line_is_a_list(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("\n".join(LINES))
    log, report = import_log_with_report(tmp_path / "train.txt", format="tiangong-st")
    assert log.candidates.query_ids.tolist() == ["30", "31"]
    assert log.query.tolist() == [0, 1, 0]
    assert log.ranking.tolist() == [[0, 1, 2], [1, 0, -1], [2, 0, 1]]
    assert log.clicks.tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0]]
    assert (report.repaired, report.dropped) == ((), ())


def test_lists_that_do_not_fit_their_clicks_are_counted(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("\n".join([*LINES, "7\t30\t[1, 2]\t[1, 1]\t[0]", "8\t30"]))
    files, some = tmp_path / "train.txt", ImportOptions(max_dropped=0.4)
    log, report = import_log_with_report(files, options=some, format="tiangong-st")
    assert log.sessions == 3
    assert isinstance(report.source, SourceCounts)
    assert list(report.source.counts.values()) == [5, 2]
    assert "source_losses" not in report.to_dict()
    reason = "lists without documents, or with another number of clicks"
    with pytest.raises(TooManyDroppedError) as stopped:
        import_log_with_report(files, format="tiangong-st")
    assert stopped.value.problems == [
        f"{files}: 40.0% of the sessions cannot be used, more than max_dropped = 0.05 allows",
        f"dropped: {reason}: 2 sessions",
    ]
    with pytest.raises(InputError) as strict:
        import_log_with_report(files, options=ImportOptions(strict=True, max_dropped=1), format="tiangong-st")
    assert strict.value.problems == [f"{files}: dropped: {reason}: 2 sessions"]


def test_what_the_importer_drops_adds_to_what_is_dropped_of_the_table(tmp_path: Path) -> None:
    """Of 10 lists, one does not fit its clicks, and one has a click of 'x': 20 %."""
    lines = [f"{i}\t30\t[1, 2]\t[1, 1]\t[0, 1]" for i in range(8)]
    lines += ["8\t30\t[1, 2]\t[1, 1]\t[0]", "9\t30\t[1, 2]\t[1, 1]\t[0, x]"]
    (tmp_path / "train.txt").write_text("\n".join(lines))

    def sessions(max_dropped: float) -> int:
        options = ImportOptions(max_dropped=max_dropped)
        return import_log_with_report(tmp_path / "train.txt", options=options, format="tiangong-st")[0].sessions

    assert sessions(0.2) == 8
    with pytest.raises(TooManyDroppedError, match=r"20.0% of the sessions"):
        sessions(0.15)


def test_another_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b c\n")
    with pytest.raises(InputError, match=r"expected lines of session, query, \[documents\]"):
        import_log_with_report(tmp_path / "train.txt", format="tiangong-st")


def write_part(path: Path, lists: int = 6, documents: int = 5, embedding: bool = True, label: bool = False) -> Path:
    """Lists of two queries; the features of a document depend on the query and the document alone."""
    rows: dict[str, list[object]] = {name: [] for name in ("query_no", "query_id", "query_md5", "text_md5", "url_md5")}
    values: dict[str, list[object]] = {name: [] for name in (*CLASSICAL, EMBEDDING, "position", "click", "label")}
    for number in range(lists):
        for place in range(documents):
            query, document = number % 2, (number + place) % 8
            rng = np.random.default_rng([query, document])
            for name, value in zip(
                rows, (number, f"id{number // 4}", f"q{query}", f"t{document}", f"u{document}"), strict=True
            ):
                rows[name].append(value)
            for name in CLASSICAL:
                values[name].append(float(rng.random()))
            values[EMBEDDING].append(rng.standard_normal(DIMENSIONS).tolist())
            values["position"].append(place + 1)
            values["click"].append(int(place == number % documents))
            values["label"].append(document % 5)
    unused = ({EMBEDDING} if not embedding else set()) | ({"click", "position"} if label else {"label"})
    columns = {name: value for name, value in {**rows, **values}.items() if name not in unused}
    schema = {EMBEDDING: pl.List(pl.Float16)} if embedding else {}
    pl.DataFrame(columns, schema_overrides=schema).write_ipc(path)
    return path


def test_lists_go_by_query_no_and_queries_by_their_hash(tmp_path: Path) -> None:
    parts = [write_part(tmp_path / f"part-0_split-{i}.feather") for i in (0, 1)]
    log, report = import_log_with_report(parts, format="baidu-ultr-uva")
    assert (log.sessions, log.k, log.candidates.n_queries) == (12, 5, 2)
    assert log.candidates.query_ids.tolist() == ["q0", "q1"]
    assert (report.kept.clicks, report.repaired, report.dropped) == (12, (), ())


def test_features_are_the_classical_ones_and_the_embedding(tmp_path: Path) -> None:
    log, _ = import_log_with_report(write_part(tmp_path / "part-0_split-0.feather"), format="baidu-ultr-uva")
    assert log.candidates.n_features == len(CLASSICAL) + DIMENSIONS
    assert log.candidates.document_ids is not None
    assert log.candidates.document_ids[0] == "t0"
    rng = np.random.default_rng([0, 0])
    assert log.candidates.features[0, :12] == pytest.approx([rng.random() for _ in CLASSICAL])
    assert log.candidates.features[0, 12:] == pytest.approx(rng.standard_normal(DIMENSIONS), abs=2e-3)  # float16


def test_a_part_without_embeddings_has_the_classical_features(tmp_path: Path) -> None:
    part = write_part(tmp_path / "part-0_split-0.feather", embedding=False)
    log, _ = import_log_with_report(part, format="baidu-ultr-uva")
    assert log.candidates.feature_names is not None
    assert log.candidates.feature_names.tolist() == list(CLASSICAL)


def test_expert_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expert labels, which a log must not have"):
        import_log_with_report(write_part(tmp_path / "validation.feather", label=True), format="baidu-ultr-uva")
