import gzip
import json
from pathlib import Path

import pytest

from cuolr.data.letor.catalog import find_source, load_source
from cuolr.data.letor.reader import read_letor
from cuolr.data.synthetic import generate
from cuolr.policies.model_folder import load_policy
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.supervised import oracle_best
from cuolr.supervised.oracle import LambdaMartSettings
from cuolr.training.training_config import TrainingConfig
from tests.cli.conftest import Run


def test_the_files_hold_the_generated_data_to_the_bit(run: Run, tmp_path: Path) -> None:
    assert (
        run("generate", "tiny", "--out", tmp_path / "a", "--train", 30, "--vali", 5, "--test", 5, "--seed", 7).status
        == 0
    )
    written = read_letor(tmp_path / "a" / "Fold1" / "train.txt")
    expected = generate("tiny", 30, seed=7)
    assert written.candidates.features.tobytes() == expected.candidates.features.tobytes()
    assert written.relevance.tolist() == expected.relevance.tolist()


def test_a_folder_that_is_there_is_not_touched(run: Run, tiny: Path) -> None:
    before = (tiny / "Fold1" / "train.txt").read_bytes()
    result = run("generate", "tiny", "--out", tiny)
    assert result.status == 2
    assert "already exists" in result.err
    assert (tiny / "Fold1" / "train.txt").read_bytes() == before


def test_only_a_generated_folder_is_replaced(run: Run, tiny: Path, tmp_path: Path) -> None:
    few = ("--train", 3, "--vali", 1, "--test", 1)
    assert run("generate", "tiny", "--out", tiny, "--overwrite", *few).status == 0
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters").write_text("dear")
    (tmp_path / "file").write_text("dear")
    for precious in ("home", "file"):
        result = run("generate", "tiny", "--out", tmp_path / precious, "--overwrite", *few)
        assert result.status == 2
        assert "it is not replaced" in result.err
    assert (tmp_path / "home" / "letters").read_text() == (tmp_path / "file").read_text() == "dear"


def test_a_place_that_cannot_be_written_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("generate", "tiny", "--out", tmp_path / "file" / "x")
    assert result.status == 2
    assert len(result.err.splitlines()) == 1
    assert "Not a directory" in result.err


def test_an_unknown_preset_lists_the_known_ones(run: Run, tmp_path: Path) -> None:
    result = run("generate", "tiney", "--out", tmp_path / "x")
    assert result.status == 2
    assert "did you mean 'tiny'?" in result.err
    assert not list(tmp_path.glob("*x*"))


def test_the_scale_of_grades_survives_where_the_highest_grade_does_not_occur(run: Run, tmp_path: Path) -> None:
    few = ("--train", 1, "--vali", 1, "--test", 1, "--seed", 3)
    assert run("generate", "web10k-like", "--out", tmp_path / "few", *few).status == 0
    splits = load_source(find_source(tmp_path / "few"))
    assert max(int(split.relevance.max()) for split in splits.values()) < 4
    assert {split.max_grade for split in splits.values()} == {generate("web10k-like", 1, seed=1).max_grade} == {4}


def test_a_folder_shows_a_row_per_split(run: Run, tiny: Path) -> None:
    result = run("inspect", tiny)
    assert result.status == 0
    assert [line.split()[0] for line in result.out.splitlines() if "–" in line and "%" in line] == [
        "train",
        "vali",
        "test",
    ]


def test_what_is_not_there_cannot_be_inspected(run: Run, tiny: Path, tmp_path: Path) -> None:
    nothing = run("inspect")
    assert (nothing.status, nothing.err) == (
        2,
        "error: DATA is missing; give the folder of a data set or a LETOR file\n",
    )
    missing = run("inspect", tmp_path / "a", tiny, tmp_path / "b.txt")
    assert missing.status == 2
    assert missing.err.splitlines() == [
        f"error: {path}: not found; expected the folder of a data set or a LETOR file"
        for path in (tmp_path / "a", tmp_path / "b.txt")
    ]


def test_generated_data_has_a_row_in_the_table_of_the_paper(run: Run, tiny: Path) -> None:
    shown = run("inspect", tiny, "--table").out
    assert any(line.split()[1:2] == ["100"] for line in shown.splitlines())
    (row,) = json.loads(run("inspect", tiny, "--table", "--json").out).values()
    assert row["queries"] == 60 + 20 + 20


def test_json_has_the_counts(run: Run, shared_data: Path) -> None:
    result = run("inspect", shared_data / "MQ2008", "--fold", 3, "--json")
    counts = json.loads(result.out)
    assert {split: counts[split]["queries"] for split in counts} == {"train": 470, "vali": 157, "test": 157}
    assert sum(counts[split]["documents"] for split in counts) == 15_211
    assert sum(counts[split]["queries_without_relevant"] for split in counts) == 220
    assert [sum(grades) for grades in zip(*(counts[split]["grades"] for split in counts), strict=True)] == [
        12_279,
        2_001,
        931,
    ]
    assert result.err == ""


def test_one_file_will_do(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "some.txt.gz"
    path.write_bytes(gzip.compress(b"1 qid:1 1:0.5\n0 qid:2 1:0.25\n0 qid:2 1:1\n"))
    counts = json.loads(run("inspect", path, "--json").out)["some.txt.gz"]
    assert counts == {
        "queries": 2,
        "documents": 3,
        "features": 1,
        "grades": [2, 1],
        "documents_per_query": [1, 1.5, 2],
        "queries_without_relevant": 1,
    }


def test_bad_lines_are_told_one_by_one_without_a_traceback(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text("1 qid:1 1:x\n1 1:1\n")
    result = run("inspect", path)
    assert result.status == 2
    assert result.out == ""
    assert result.err.splitlines() == [
        f"error: {path}:1: expected a number as the value of feature 1, found 'x'",
        f"error: {path}:2: expected 'qid:<id>' as field 2, found '1:1'",
    ]


def test_scattered_queries_are_told_and_read_all_the_same(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "scattered.txt"
    path.write_text("1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:1\n")
    result = run("inspect", path)
    assert result.status == 0
    assert result.err.startswith(f"warning: {path}: the rows of 1 of 2 queries are not consecutive")


def test_an_incomplete_data_set_gets_a_note(run: Run, shared_data: Path) -> None:
    result = run("inspect", shared_data / "mslr-web10k-sample", "--dataset", "mslr-web10k")
    assert result.status == 0
    assert "expected 10,000 queries and 1,200,192 documents in MSLR-WEB10K, found 97 and 11,063" in result.err


def test_the_table_of_the_paper_has_a_row_for_each_data_set(run: Run, shared_data: Path, tiny: Path) -> None:
    rows = json.loads(run("inspect", shared_data / "MQ2008", tiny, "--table", "--json").out)
    assert rows[str(shared_data / "MQ2008")] == {
        "name": "LETOR 4.0 MQ2008",
        "queries": 784,
        "features": 46,
        "documents": 15_211,
        "relevance_levels": 3,
        "folds": 5,
    }
    shown = run("inspect", shared_data / "MQ2008", "--table")
    assert "15,211" in shown.out
    assert "relevance levels" in shown.out


QUICK = LambdaMartSettings(trees=10, leaves=4, learning_rate=0.1, min_documents_per_leaf=10, threads=1)


def provenance(model: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((model / "model.json").read_text())["provenance"]
    return content


def test_it_writes_a_model_that_can_be_evaluated(run: Run, tiny: Path, tmp_path: Path) -> None:
    result = run("oracle", "--data", tiny, "--out", tmp_path / "model", "--threads", 1)
    assert result.status == 0, result.err
    assert "lambdamart, ndcg@10 0." in result.err
    assert "on vali (queries without a relevant document skipped)" in result.err
    assert isinstance(load_policy(tmp_path / "model"), TreesPolicy)
    described = provenance(tmp_path / "model")
    assert (described["oracle"], described["fold"]) == ("lambdamart", 1)
    evaluated = json.loads(run("evaluate", tmp_path / "model", "--data", tiny, "--json").out)
    assert 0 < evaluated["measures"]["ndcg@10"] <= 1


def test_the_best_says_what_was_tried(run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_best, "TUNED_LAMBDAMART", (QUICK,))
    monkeypatch.setattr(oracle_best, "NETWORK_TRAINING", TrainingConfig(steps=2))
    result = run("oracle", "--data", tiny, "--out", tmp_path / "model", "--best", "--threads", 1)
    assert result.status == 0, result.err
    described = provenance(tmp_path / "model")
    tried = described["tried"]
    assert isinstance(tried, dict)
    assert len(tried) == 2 + 1 + 3
    assert described["chosen"] == max(tried, key=lambda name: tried[name])
    assert result.err.count("ndcg@10") == 6 + 1


def test_a_model_that_is_there_is_not_replaced_unasked(run: Run, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    result = run("oracle", "--data", tiny, "--out", tmp_path / "model")
    assert result.status == 2
    assert "already exists" in result.err
    (tmp_path / "model" / "thesis.txt").write_text("precious")
    result = run("oracle", "--data", tmp_path / "nowhere", "--out", tmp_path / "model", "--overwrite")
    assert "has no model.json, so it is not replaced" in result.err, "before anything is read"
