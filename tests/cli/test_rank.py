from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.data.letor.reader import write_letor
from cuolr.data.normalise import Normaliser
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import save_policy
from cuolr.types import Candidates, RankingDataset
from tests.cli.conftest import Run
from tests.learners.lists import N_FEATURES, build

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


def test_all_documents_are_ranked_however_large_the_number(run: Run, model: Path, letor: Path, tmp_path: Path) -> None:
    result = run("rank", model, "--candidates", letor, "--out", tmp_path / "all.csv", "--k", "1000000000000")
    assert result.status == 0, result.err
    assert pl.read_csv(tmp_path / "all.csv").rows() == EXPECTED


def test_a_trec_run_has_six_columns_and_falling_scores(run: Run, model: Path, letor: Path, tmp_path: Path) -> None:
    run("rank", model, "--candidates", letor, "--out", tmp_path / "out.trec", "--k", 2)
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
        (letor, "out.csv", ("--k", 0), "--k: expected a whole number >= 1, found 0"),
        (wide, "out.csv", (), "has 2 features, but the model has 1"),
        (spaced, "out.trec", (), "ids in a TREC file cannot contain spaces, found query_id 'my query'"),
        (twice, "out.trec", (), "each document of a query once, found '2' of '1' again"),
        (tmp_path / "nothing.txt", "out.csv", (), "nothing.txt: file not found"),
    ):
        result = run("rank", model, "--candidates", candidates, "--out", tmp_path / "out" / out, *more)
        assert result.status == 2
        assert message in result.err.replace("\n", " ")
        assert not list((tmp_path / "out").glob("*"))


def test_a_folder_is_not_taken_for_the_file(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "out.csv").mkdir()
    nothing = tmp_path / "nothing.txt"
    result = run("rank", model, "--candidates", nothing, "--out", tmp_path / "out.csv", "--overwrite")
    assert "out.csv: is a folder; choose the name of a file" in result.err


def ranked(run: Run, model: Path, candidates: Path, *more: object) -> list[str]:
    out = candidates.with_name("ranked.csv")
    result = run("rank", model, "--candidates", candidates, "--out", out, "--overwrite", *more)
    assert result.status == 0, result.err
    return pl.read_csv(out, schema_overrides={"doc_id": pl.String})["doc_id"].to_list()


def by_last_feature(folder: Path, names: list[str] | None = None) -> Path:
    """A model that ranks by the last of three features."""
    known = None if names is None else np.array(names)
    normaliser = Normaliser("none", np.empty(0), np.empty(0), known)
    save_policy(LinearPolicy(np.array([0, 0, 1], np.float32), normaliser), folder)
    return folder


def test_features_that_letor_leaves_out_are_zero(run: Run, tmp_path: Path) -> None:
    model, file = by_last_feature(tmp_path / "model"), tmp_path / "sparse.txt"
    file.write_text("0 qid:1 1:5 # docid = x\n0 qid:1 2:1 # docid = y\n")
    result = run("rank", model, "--candidates", file, "--out", tmp_path / "out.csv")
    assert result.status == 0, result.err
    assert "sparse.txt: has 2 features, but the model has 3; the missing ones are set to 0" in result.err
    assert pl.read_csv(tmp_path / "out.csv")["doc_id"].to_list() == ["x", "y"]
    file.write_text("0 qid:1 1:5 # docid = x\n0 qid:1 4:1 # docid = y\n")
    refused = run("rank", model, "--candidates", file, "--out", tmp_path / "other.csv")
    assert refused.status == 2
    assert "sparse.txt: has 4 features, but the model has 3" in refused.err


def test_parquet_features_are_found_by_name_whatever_their_order(run: Run, tmp_path: Path) -> None:
    model = by_last_feature(tmp_path / "model", ["price", "age", "fit"])
    columns = {"query_id": ["q", "q"], "doc_id": ["x", "y"], "fit": [1.0, 2.0], "price": [9.0, 0.0], "age": [0, 0]}
    file = tmp_path / "documents.parquet"
    pl.DataFrame(columns).write_parquet(file)
    assert ranked(run, model, file) == ["y", "x"]
    pl.DataFrame(columns).rename({"fit": "fat"}).write_parquet(file)
    refused = run("rank", model, "--candidates", file, "--out", tmp_path / "other.csv")
    assert refused.status == 2
    problems = refused.err.replace("\n", " ")
    assert "documents.parquet: feature 'fit' is missing" in problems
    assert "documents.parquet: feature 'fat' was not in the training data" in problems


def test_a_list_of_another_length_is_refused_with_the_name_of_the_file(run: Run, tmp_path: Path) -> None:
    model, file = by_last_feature(tmp_path / "model"), tmp_path / "documents.parquet"
    pl.DataFrame({"query_id": ["q"], "doc_id": ["x"], "features": [[1.0, 2.0]]}).write_parquet(file)
    refused = run("rank", model, "--candidates", file, "--out", tmp_path / "out.csv")
    assert refused.status == 2
    assert "documents.parquet: expected documents with 3 features, as in training, found 2" in refused.err


def test_rankings_are_drawn_by_a_seed(run: Run, tmp_path: Path) -> None:
    save_policy(build("sac").policy(), tmp_path / "model")
    features = np.random.default_rng(0).uniform(-1, 1, (8, N_FEATURES)).astype(np.float32)
    ids = np.array([f"d{i}" for i in range(8)])
    dataset = RankingDataset(Candidates(features, np.array([0, 8]), np.array(["q"]), ids), np.zeros(8, np.int8), 1)
    write_letor(dataset, tmp_path / "documents.txt")
    best, *drawn = (
        ranked(run, tmp_path / "model", tmp_path / "documents.txt", *more)
        for more in ((), ("--sample", 1), ("--sample", 1), ("--sample", 2))
    )
    assert drawn[0] == drawn[1]
    assert len({tuple(best), tuple(drawn[0]), tuple(drawn[2])}) == 3
    assert all(sorted(ranking) == sorted(ids) for ranking in drawn)


def test_what_cannot_be_drawn_is_refused(run: Run, model: Path, letor: Path, tmp_path: Path) -> None:
    arguments = ("--candidates", letor, "--out", tmp_path / "out.csv", "--sample")
    result = run("rank", model, *arguments, 3)
    assert result.status == 2
    assert "--sample: this policy is deterministic; rankings cannot be sampled from it" in result.err
    save_policy(build("sac").policy(), model)
    result = run("rank", model, *arguments, -1)
    assert result.status == 2
    assert "--sample: seed: expected a whole number >= 0, found -1" in result.err
