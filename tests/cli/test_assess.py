import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import cuolr
from cuolr.cli.assess import EXIT_STATUS, _show
from cuolr.data.letor.reader import read_letor
from cuolr.evaluation.evaluate import evaluate
from cuolr.evaluation.significance import compare
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.gain_estimate import GainByEstimator
from cuolr.off_policy.recommendation import ChangedQuery, OffPolicyEvaluation
from cuolr.policies.model_folder import save_policy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.cli.conftest import Run
from tests.off_policy.evaluated import evaluated
from tests.small_log import small_log


@pytest.fixture
def log() -> ClickLog:
    return small_log(300, queries=40)


@pytest.mark.thorough
def test_a_model_saved_from_python_knows_the_log_that_it_was_fitted_on(run: Run, log: ClickLog, tmp_path: Path) -> None:
    ranker = cuolr.Ranker("naive", steps=4, batch_size=8, settings={"learner.hidden": [8, 8]}).fit(log)
    ranker.save(tmp_path / "model")
    cuolr.save_click_log(log, tmp_path / "log")
    cuolr.save_click_log(log.select(slice(0, 250)), tmp_path / "other")
    on_own, on_other = (run("assess", tmp_path / "model", tmp_path / name, "--json") for name in ("log", "other"))
    found = json.loads(on_own.out)
    expected = ranker.assess(log).as_dict()
    assert {name: found[name] for name in ("queries", "gain", "interval", "reason")}.items() <= expected.items()
    assert (found["queries"], found["trained_on_these_queries"]) == (4, False), "those held out"
    assert json.loads(on_other.out)["queries"] > 30, "all"


@pytest.mark.thorough
def test_several_models_are_compared_with_production_or_with_another_model(
    run: Run, log: ClickLog, tmp_path: Path
) -> None:
    small = cuolr.Ranker("naive", steps=2, batch_size=8, settings={"learner.hidden": [8]})
    for name, seed in (("one", 1), ("two", 2)):
        small.set_params(seed=seed).fit(log).save(tmp_path / name)
    cuolr.save_click_log(log.select(slice(0, 250)), tmp_path / "log")
    one, two, later = (tmp_path / name for name in ("one", "two", "log"))
    both = run("assess", one, later, "--more-models", two, "--json", "--plot", tmp_path / "gain.svg")
    alone = [json.loads(run("assess", model, later, "--json").out) for model in (one, two)]
    assert json.loads(both.out) == alone
    assert both.status == min(EXIT_STATUS[found["recommendation"]] for found in alone)
    assert (tmp_path / "gain.svg").stat().st_size > 0
    against = run("assess", one, later, "--against", one, "--json")
    assert json.loads(against.out)["gain"] == pytest.approx(0, abs=1e-9)
    assert "over the other model" in run("assess", one, later, "--against", two).out
    discounted = run("assess", one, later, "--discount", "1,0.5,0.25", "--k", "2")
    assert "estimated gain in discounted clicks over production" in discounted.out
    assert json.loads(run("assess", one, later, "--discount", "dcg", "--k", "2", "--json").out)["position_weights"] == [
        1.0,
        pytest.approx(0.6309, abs=1e-4),
    ]
    refused = run("assess", one, later, "--discount", "log")
    assert (refused.status, refused.err) == (
        2,
        "error: --discount: expected dcg or weights such as 1,0.5,0.25, found 'log'\n",
    )


@pytest.mark.parametrize(("recommendation", "status"), [("ship", 0), ("test", 10), ("keep", 11)])
def test_the_exit_status_tells_the_recommendation(
    run: Run, log: ClickLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recommendation: str, status: int
) -> None:
    ranker = cuolr.Ranker("naive", steps=2, batch_size=8, settings={"learner.hidden": [8]}).fit(log)
    ranker.save(tmp_path / "model")
    cuolr.save_click_log(log, tmp_path / "log")
    doubtful, gain = recommendation == "test", -0.5 if recommendation == "keep" else 0.5
    evaluation = OffPolicyEvaluation(
        queries=100,
        k=10,
        trained_on_these_queries=doubtful,
        held_out=False,
        never_shown=0.0,
        overlap=1.0,
        gain=gain,
        interval=(gain - 0.1, gain + 0.1),
        estimates=(GainByEstimator("pbm", gain, (gain - 0.1, gain + 0.1), (gain - 0.1, gain + 0.1), 1.0, 0.0),),
        logging_policy_share=0.25,
        logging_policy_overlap=0.75,
        identifiable=True,
    )
    monkeypatch.setattr("cuolr.off_policy.assess.assess", lambda *_: evaluation)
    as_text, as_json = (run("assess", tmp_path / "model", tmp_path / "log", *more) for more in ((), ("--json",)))
    assert (as_text.status, as_json.status) == (status, status)
    assert json.loads(as_json.out)["recommendation"] == recommendation
    assert as_text.out.splitlines()[-1].startswith(f"{recommendation}: {gain:+.1%} clicks")
    cells = [re.split(r"\s{2,}", line.strip()) for line in as_text.out.splitlines()]
    rows = dict(row for row in cells if len(row) == 2)
    assert rows["position bias identifiable"] == "yes"
    assert rows["model trained on these clicks"] == ("yes" if doubtful else "no")
    assert rows["share of the score from a model of the current ranker"] == "25%"
    assert rows["95 % interval"] == f"{gain - 0.1:+.1%} to {gain + 0.1:+.1%}"


def test_what_a_test_needs_and_the_changed_queries_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    estimate = GainByEstimator("pbm", 0.2, (0.1, 0.3), (0.1, 0.3), 1.0, 0.0, doubts=("the interval is not reliable",))
    evaluation = OffPolicyEvaluation(
        queries=100,
        k=10,
        trained_on_these_queries=False,
        held_out=False,
        never_shown=0.0,
        overlap=1.0,
        gain=0.2,
        interval=(0.1, 0.3),
        estimates=(estimate,),
        logging_policy_share=None,
        logging_policy_overlap=None,
        identifiable=True,
        sessions_for_test=12_345,
        sessions_for_interleaving=678,
        changed=(ChangedQuery("red shoes", 1_200, 34.56), ChangedQuery("hats", 80, -7.0)),
    )
    _show(evaluation, "MODEL on LOG")
    lines = [re.sub(r"\s{2,}", "  ", line.strip()) for line in capsys.readouterr().out.splitlines()]
    for line in (
        "sessions in each arm of an A/B test, for 80 % power  12,345",
        "sessions of an interleaving test, for 80 % power  678",
        "pbm: the interval is not reliable",
        "red shoes  1,200  +34.6",
        "hats  80  -7.0",
    ):
        assert line in lines


def test_the_worst_and_the_best_case_are_explained_where_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    known = GainByEstimator("pbm", 0.2, (0.1, 0.3), (0.1, 0.3), 1.0, 0.0)
    sampled = GainByEstimator("list-ips", 0.2, (0.1, 0.3), (-0.1, 0.5), effective_sample_size=500.0)
    evaluation = evaluated(known, sampled, gain=0.2, interval=(0.1, 0.3))

    def shown(found: OffPolicyEvaluation) -> str:
        _show(found, "MODEL on LOG")
        return " ".join(capsys.readouterr().out.split())

    explained = "at worst as attractive as those of the model that it hardly shows"
    assert explained not in shown(evaluation), "no document is hardly shown"
    differs = replace(evaluation, estimates=(replace(known, bounds=(0.05, 0.4)), sampled))
    assert explained in shown(differs)
    assert "it is the other way round" not in shown(differs)
    assert "it is the other way round" in shown(replace(differs, against="the other model"))


def test_the_statuses_are_in_the_help(run: Run) -> None:
    text = run("assess", "--help").out
    assert all(f"  {status:<4}{recommendation}: " in text for recommendation, status in EXIT_STATUS.items())


def test_what_is_no_model_is_refused(run: Run, log: ClickLog, tmp_path: Path) -> None:
    cuolr.save_click_log(log, tmp_path / "log")
    result = run("assess", tmp_path, tmp_path / "log")
    assert result.status == 2
    assert len(result.err.splitlines()) == 1


def test_a_log_of_other_features_is_refused(run: Run, log: ClickLog, tmp_path: Path) -> None:
    ranker = cuolr.Ranker("naive", steps=2, batch_size=8, settings={"learner.hidden": [8]}).fit(log)
    ranker.save(tmp_path / "model")
    fewer = replace(log.candidates, features=log.candidates.features[:, :3])
    cuolr.save_click_log(replace(log, candidates=fewer), tmp_path / "log")
    result = run("assess", tmp_path / "model", tmp_path / "log")
    assert result.status == 2
    assert "features" in result.err


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
