import json
from pathlib import Path

import pytest

from cuolr.data.letor.reader import read_letor
from cuolr.evaluation.evaluate import evaluate
from cuolr.evaluation.significance import compare
from cuolr.policies.model_folder import save_policy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.cli.conftest import Run


@pytest.fixture
def models(tiny: Path, tmp_path: Path) -> list[Path]:
    train = read_letor(tiny / "Fold1" / "train.txt")
    policies = [RandomPolicy(1), fit_ranksvm(train, 1.0), RandomPolicy(2)]
    folders = [tmp_path / name for name in ("random", "svm", "other")]
    for policy, folder in zip(policies, folders, strict=True):
        save_policy(policy, folder)
    return folders


def test_the_table_has_a_line_per_model_and_measure(run: Run, tiny: Path, models: list[Path]) -> None:
    result = run("compare", *models, "--data", tiny, "--measures", "ndcg@5,err@5")
    assert result.status == 0, result.err
    assert sum(line.count("/svm") for line in result.out.splitlines()) == 2
    assert "against" in result.out
    assert "win/tie/loss" in result.out
    assert "20 queries; " in " ".join(result.out.split())
    assert "without a relevant document, skipped; p values corrected by Holm's method" in " ".join(result.out.split())


def test_a_line_has_the_difference_with_stars_the_interval_both_p_values_and_the_wins(
    run: Run, tiny: Path, models: list[Path]
) -> None:
    arguments = (*models[:2], "--data", tiny, "--without-relevant", "zero")
    found = json.loads(run("compare", *arguments, "--json").out)["comparisons"][0]
    table = run("compare", *arguments).out
    line = next(line for line in table.splitlines() if "/svm" in line)
    low, high = found["interval"]
    t_test, permutation = (f"{found[name]:.4f}" for name in ("t_test_holm", "permutation_test_holm"))
    assert found["t_test_holm"] < 0.01
    assert f"{found['difference']:+.4f}**" in line
    assert f"{low:+.4f} to {high:+.4f}" in line
    assert f" {'< 0.0001' if t_test == '0.0000' else t_test} " in line
    assert f" {'< 0.0001' if permutation == '0.0000' else permutation} " in line
    assert f"{found['wins']}/{found['ties']}/{found['losses']}" in line
    assert "without a relevant document, counted as 0" in " ".join(table.split())


def test_json_has_the_differences_and_both_p_values(run: Run, tiny: Path, models: list[Path]) -> None:
    result = json.loads(run("compare", *models, "--data", tiny, "--measures", "ndcg@5", "--json").out)
    test = read_letor(tiny / "Fold1" / "test.txt", max_grade=2)
    train = read_letor(tiny / "Fold1" / "train.txt")
    first = evaluate(RandomPolicy(1), test, ["ndcg@5"]).per_query["ndcg@5"]
    second = evaluate(fit_ranksvm(train, 1.0), test, ["ndcg@5"]).per_query["ndcg@5"]
    expected = compare(second, first)
    found = result["comparisons"][0]
    assert found["difference"] == pytest.approx(expected.difference)
    assert (found["wins"], found["ties"], found["losses"]) == (expected.wins, expected.ties, expected.losses)
    assert found["t_test"] == pytest.approx(expected.t_test)
    assert found["t_test_holm"] >= found["t_test"]


def test_one_model_cannot_be_compared(run: Run, tiny: Path, models: list[Path]) -> None:
    result = run("compare", models[0], "--data", tiny)
    assert (result.status, result.err) == (2, "error: expected at least two models to compare, found 1\n")


def test_a_seed_below_0_is_refused(run: Run, tiny: Path, models: list[Path]) -> None:
    result = run("compare", *models, "--data", tiny, "--seed", -1)
    assert result.status == 2
    assert "--seed: expected a whole number >= 0, found -1" in result.err


def test_a_file_has_no_folds(run: Run, tiny: Path, models: list[Path]) -> None:
    result = run("compare", *models, "--data", tiny / "Fold1" / "test.txt", "--fold", 1)
    assert "test.txt is a single file without folds; omit --fold" in result.err.replace("\n", " ")


def test_a_measure_is_compared_once_however_it_is_written(run: Run, tiny: Path, models: list[Path]) -> None:
    result = run("compare", *models[:2], "--data", tiny, "--measures", "ndcg@010,ndcg@10,clicks:pbm@5", "--json")
    assert result.status == 0, result.err
    assert [line["measure"] for line in json.loads(result.out)["comparisons"]] == ["ndcg@10", "clicks:pbm@5"]


def test_the_caption_names_what_the_option_does_not_touch(run: Run, tiny: Path, models: list[Path]) -> None:
    arguments = ("--measures", "ndcg@5,dcg@5,clicks:pbm@5", "--without-relevant", "one")
    result = run("compare", *models[:2], "--data", tiny, *arguments)
    assert result.status == 0, result.err
    assert "counted as 1 (dcg@5: 0; clicks:pbm@5: their own value)" in " ".join(result.out.split())
