from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.data.letor import write_letor
from cuolr.data.normalise import Normaliser
from cuolr.policies.linear import LinearPolicy
from cuolr.policies.store import save_policy
from cuolr.types import Candidates, RankingDataset
from tests.commands.conftest import Run

# Query a ranks its documents x3, x1, x2; query b has only y1, y2, best first y2.
FEATURES = np.array([[2.0], [1.0], [3.0], [0.0], [5.0]], np.float32)
EXPECTED = [("a", 1, "x3"), ("a", 2, "x1"), ("a", 3, "x2"), ("b", 1, "y2"), ("b", 2, "y1")]


def some_candidates() -> Candidates:
    ids = np.array(["x1", "x2", "x3", "y1", "y2"])
    return Candidates(FEATURES, np.array([0, 3, 5]), np.array(["a", "b"]), ids)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A ranker by the only feature."""
    policy = LinearPolicy(np.ones(1, np.float32), Normaliser("none", np.empty(0), np.empty(0)))
    save_policy(policy, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def letor(tmp_path: Path) -> Path:
    """The documents as LETOR, with labels that are the wrong way round."""
    write_letor(RankingDataset(some_candidates(), np.array([1, 2, 0, 4, 0], np.int8), 4), tmp_path / "documents.txt")
    return tmp_path / "documents.txt"


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_rankings_are_written_best_first(run: Run, model: Path, letor: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / "new" / f"rankings{suffix}"
    result = run("rank", model, "--candidates", letor, "--out", out)
    assert result.status == 0, result.err
    table = pl.read_parquet(out) if suffix == ".parquet" else pl.read_csv(out)
    assert table.columns == ["query_id", "position", "doc_id"]
    assert table.rows() == EXPECTED
    assert [file.name for file in out.parent.iterdir()] == [out.name]


def test_a_trec_run_has_six_columns_and_falling_scores(run: Run, model: Path, letor: Path, tmp_path: Path) -> None:
    run("rank", model, "--candidates", letor, "--out", tmp_path / "out.trec", "--top", 2)
    assert (tmp_path / "out.trec").read_text().splitlines() == [
        "a Q0 x3 1 2 cuolr",
        "a Q0 x1 2 1 cuolr",
        "b Q0 y2 1 2 cuolr",
        "b Q0 y1 2 1 cuolr",
    ]


def test_parquet_candidates_are_ranked_too(run: Run, model: Path, tmp_path: Path) -> None:
    table = {"query_id": ["a"] * 3 + ["b"] * 2, "doc_id": ["x1", "x2", "x3", "y1", "y2"], "f": FEATURES[:, 0]}
    pl.DataFrame(table).write_parquet(tmp_path / "documents.parquet")
    run("rank", model, "--candidates", tmp_path / "documents.parquet", "--out", tmp_path / "out.csv")
    assert pl.read_csv(tmp_path / "out.csv").rows() == EXPECTED


def test_documents_without_an_id_are_named_by_their_number(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "documents.txt").write_text("0 qid:7 1:2\n0 qid:7 1:9 # docid = named\n0 qid:7 1:5\n")
    run("rank", model, "--candidates", tmp_path / "documents.txt", "--out", tmp_path / "out.csv")
    assert pl.read_csv(tmp_path / "out.csv").rows() == [(7, 1, "named"), (7, 2, "3"), (7, 3, "1")]


def test_letor_candidates_are_read_as_told(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "zero.txt").write_text("0 qid:7 0:2 # docid = x\n0 qid:7 0:9 # docid = y\n")
    (tmp_path / "null.txt").write_text(
        "0 qid:7 1:-2 # docid = x\n0 qid:7 1:NULL # docid = y\n0 qid:7 1:-3 # docid = z\n"
    )
    for name, option, expected in (
        ("zero.txt", ("--zero-based",), ["y", "x"]),
        ("null.txt", (), ["y", "x", "z"]),
        ("null.txt", ("--missing", "minimum"), ["x", "y", "z"]),  # y is −3 as z is, and comes first in the file
    ):
        result = run(
            "rank", model, "--candidates", tmp_path / name, "--out", tmp_path / "o.csv", "--overwrite", *option
        )
        assert result.status == 0, result.err
        assert pl.read_csv(tmp_path / "o.csv")["doc_id"].to_list() == expected
    refused = run("rank", model, "--candidates", tmp_path / "zero.txt", "--out", tmp_path / "other.csv")
    assert refused.status == 2


def test_a_file_is_not_overwritten_unless_asked_for(run: Run, model: Path, letor: Path, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("precious")
    refused = run("rank", model, "--candidates", letor, "--out", tmp_path / "out.csv")
    assert refused.status == 2
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert run("rank", model, "--candidates", letor, "--out", tmp_path / "out.csv", "--overwrite").status == 0
    assert (tmp_path / "out.csv").read_text() != "precious"


def test_bad_input_is_one_line_and_leaves_no_file(run: Run, model: Path, letor: Path, tmp_path: Path) -> None:
    wide = tmp_path / "wide.txt"
    wide.write_text("0 qid:1 1:1 2:2\n")
    spaced = tmp_path / "spaced.parquet"
    pl.DataFrame({"query_id": ["my query"], "doc_id": ["d"], "f": [1.0]}).write_parquet(spaced)
    twice = tmp_path / "twice.txt"
    twice.write_text("0 qid:1 1:1 # docid = 2\n0 qid:1 1:2\n")
    for candidates, out, more, message in (
        (letor, "out.txt", (), "expected a name that ends in .parquet, .pq, .csv, .trec, .run, found '.txt'"),
        (letor, "out.csv", ("--top", 0), "--top: expected a whole number from 1 up, found 0"),
        (wide, "out.csv", (), "ranks documents of 1 features, found 2"),
        (spaced, "out.trec", (), "a TREC file cannot hold spaces, found query_id 'my query'"),
        (twice, "out.trec", (), "each document of a query once, found '2' of '1' again"),
        (tmp_path / "nothing.txt", "out.csv", (), "nothing.txt: cannot be read"),
    ):
        result = run("rank", model, "--candidates", candidates, "--out", tmp_path / "out" / out, *more)
        assert result.status == 2
        assert message in result.err.replace("\n", " ")
        assert not list((tmp_path / "out").glob("*"))
