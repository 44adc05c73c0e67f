import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.clicks.pbm import EYE_TRACKING
from cuolr.data.normalise import Normaliser
from cuolr.examination.propensities import Estimate, read_propensities
from cuolr.logs.contexts import ContextCurves
from cuolr.logs.log_folder import save_click_log
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.training.base_learner import LEARNERS
from cuolr.training.fit import FitRequest, fit
from cuolr.training.log_form import TrainingLog
from cuolr.training.presets.configure import configure
from tests.cli.conftest import Result, Run
from tests.small_log import small_log


def simulate(run: Run, data: Path, out: Path, *more: object) -> Result:
    arguments = ("simulate", "--data", data, "--click-model", "dcm", "--sessions", 500, "--out", out)
    return run(*arguments, *more)


@pytest.fixture
def log(run: Run, tiny: Path, tmp_path: Path) -> Path:
    """A simulated log with estimates from a few random lists."""
    result = simulate(run, tiny, tmp_path / "log", "--randomised-lists", 5_000)
    assert result.status == 0, result.err
    return tmp_path / "log"


def train(run: Run, log: Path, out: Path, *more: object) -> Result:
    small = ("--steps", 4, "--set", "training.batch_size=8")
    return run("train", log, "--out", out, *small, *more)


def weights(policy: RankingPolicy) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in policy.arrays().items()}


def weights_in(*models: Path) -> list[dict[str, bytes]]:
    return [weights(load_policy(model)) for model in models]


def test_simulate_stores_only_the_estimates_of_the_randomised_lists(run: Run, log: Path) -> None:
    found = read_propensities(log / "propensity.json")
    assert found.lists == 5_000
    assert found.examination is not None
    assert len(found.examination.values) == 10
    assert found.continuation.keys() == {"mle", "paper"}
    content = json.loads((log / "propensity.json").read_text())
    assert content.keys() == {"format", "lists", "examination", "continuation"}


def test_without_randomised_lists_there_is_no_estimate(run: Run, tiny: Path, tmp_path: Path) -> None:
    assert simulate(run, tiny, tmp_path / "log", "--randomised-lists", 0).status == 0
    assert not (tmp_path / "log" / "propensity.json").exists()
    result = simulate(run, tiny, tmp_path / "other", "--randomised-lists", -1)
    assert result.status == 2
    assert "--randomised-lists: expected a whole number >= 0, found -1" in result.err
    assert not (tmp_path / "other").exists()


def test_too_few_random_lists_are_told_and_what_they_say_can_be_read(run: Run, tiny: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    result = simulate(run, tiny, log, "--randomised-lists", 1, "--seed", 3)
    assert result.status == 0, result.err
    assert (
        "note: --randomised-lists 1: too few to estimate examination at position 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"
        in result.err
    )
    shown = run("propensity", log, "--plot", tmp_path / "few.png")
    assert shown.status == 0, shown.err
    refused = train(run, log, tmp_path / "model", "--learner", "ipw")
    assert refused.status == 2
    assert "examination is needed for 10 positions, but unknown for position 1" in refused.err
    enough = simulate(run, tiny, tmp_path / "enough", "--randomised-lists", 5_000)
    assert "too few" not in enough.err


def test_the_randomised_lists_do_not_change_the_log(run: Run, tiny: Path, log: Path, tmp_path: Path) -> None:
    simulate(run, tiny, tmp_path / "without", "--randomised-lists", 0)
    logs = [(folder / "sessions.parquet").read_bytes() for folder in (log, tmp_path / "without")]
    assert logs[0] == logs[1]


def test_the_estimates_are_shown_as_a_table_and_as_json(run: Run, log: Path) -> None:
    result = run("propensity", log)
    assert result.status == 0, result.err
    assert "from 5,000 lists in random order" in result.out
    assert result.out.count("unknown") == 2
    values = json.loads(run("propensity", log / "propensity.json", "--json").out)
    assert values["examination"][0] == 1
    assert values["continuation (mle)"][9] is None
    assert f"{values['examination'][4]:.4f}" in result.out


def test_the_estimates_are_drawn(run: Run, log: Path, tmp_path: Path) -> None:
    for name, start in (("picture.png", b"\x89PNG"), ("picture.svg", b"<?xml")):
        assert run("propensity", log, "--plot", tmp_path / name).status == 0
        assert (tmp_path / name).read_bytes().startswith(start)
    result = run("propensity", log, "--plot", tmp_path / "picture.docx")
    assert result.status == 2
    assert "expected a name that ends in .png, .svg, .pdf, found '.docx'" in result.err


@pytest.mark.thorough
def test_the_same_estimates_give_the_same_picture(run: Run, log: Path, tmp_path: Path) -> None:
    for kind in ("png", "pdf"):
        pictures = [tmp_path / f"{number}.{kind}" for number in range(2)]
        for picture in pictures:
            assert run("propensity", log, "--plot", picture).status == 0
        assert pictures[0].read_bytes() == pictures[1].read_bytes()


def test_the_truth_of_a_simulated_log_is_shown_beside_the_estimates(run: Run, log: Path, tmp_path: Path) -> None:
    """The log is of the dependent click model: its continuation depends on the position alone, its examination not."""
    assert "continuation (true)" in run("propensity", log).out
    values = json.loads(run("propensity", log, "--json").out)
    assert values["continuation (true)"] == pytest.approx(EYE_TRACKING)
    assert "examination (true)" not in values
    assert len(values["standard_errors"]["continuation (mle)"]) == 10
    run("propensity", log, "--plot", tmp_path / "with.svg")
    run("propensity", log / "propensity.json", "--plot", tmp_path / "without.svg")
    pictures = [(tmp_path / name).read_text() for name in ("with.svg", "without.svg")]
    assert ["<!-- true -->" in picture for picture in pictures] == [True, False]
    assert all("<!-- maximum likelihood -->" in picture for picture in pictures)


def test_a_log_that_does_not_say_its_click_model_has_no_truth(run: Run, log: Path) -> None:
    meta = json.loads((log / "meta.json").read_text())
    for source in ({"table": "clicks.csv"}, None, {"click_model": None}):
        (log / "meta.json").write_text(json.dumps(meta | {"source": source}))
        result = run("propensity", log, "--no-verify")
        assert result.status == 0, result.err
        assert "true" not in result.out


def test_values_of_ones_own_are_shown_and_drawn(run: Run, tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text('{"continuation": [0.7, 0.6, null]}')
    result = run("propensity", tmp_path / "own.json", "--plot", tmp_path / "own.svg")
    assert result.status == 0, result.err
    assert [line.split() for line in result.out.splitlines() if line[:3] == "  3"] == [["3", "unknown"]]
    assert "<!-- given -->" in (tmp_path / "own.svg").read_text()


@pytest.mark.thorough
def test_a_log_in_random_order_gives_an_estimate_for_another(run: Run, tiny: Path, log: Path, tmp_path: Path) -> None:
    random_order = ("--logging", "random", "--temperature", 1e6, "--randomised-lists", 0)
    simulate(run, tiny, tmp_path / "randomised", *random_order)
    result = run("propensity", tmp_path / "randomised", "--randomised", "--out", tmp_path / "own.json")
    assert result.status == 0, result.err
    assert read_propensities(tmp_path / "own.json").lists == 500
    trained = train(run, log, tmp_path / "model", "--learner", "ipw", "--propensities", tmp_path / "own.json")
    assert trained.status == 0, trained.err
    assert train(run, log, tmp_path / "beside", "--learner", "ipw").status == 0
    given, beside = weights_in(tmp_path / "model", tmp_path / "beside")
    assert given != beside


def test_a_log_that_is_not_in_random_order_is_refused(run: Run, tiny: Path, tmp_path: Path) -> None:
    for name, logging in (("svm", "ranksvm"), ("fixed", "random")):
        simulate(run, tiny, tmp_path / name, "--logging", logging, "--randomised-lists", 0)
        result = run("propensity", tmp_path / name, "--randomised", "--out", tmp_path / "own.json")
        assert (result.status, len(result.err.splitlines())) == (2, 1)
        assert "needs a log whose lists were shown in a new random order in each session" in result.err
        assert "each document of this log was always shown at the same position" in result.err
        assert not (tmp_path / "own.json").exists()


def test_a_log_that_marks_no_list_as_random_is_refused(run: Run, tmp_path: Path) -> None:
    log = small_log(60)
    save_click_log(replace(log, randomised=np.zeros(60, bool)), tmp_path / "LOG")
    result = run("propensity", tmp_path / "LOG", "--randomised", "--out", tmp_path / "own.json")
    assert (result.status, result.err.splitlines()[-1]) == (
        2,
        f"error: {tmp_path / 'LOG'}: --randomised: no list of this log is marked as in random order",
    )


def test_the_outputs_are_checked_before_any_work_and_their_folder_is_made(run: Run, log: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "new" / "x.json", tmp_path / "newer" / "x.svg"
    assert run("propensity", log, "--out", out, "--plot", plot).status == 0
    assert (out.is_file(), plot.is_file()) == (True, True)
    twice = run("propensity", tmp_path / "nothing", "--out", plot, "--plot", plot, "--overwrite")
    assert "given for two outputs" in twice.err
    (log / "meta.json").write_text("{")
    assert run("propensity", log, "--out", tmp_path / "other.json").status == 2
    assert not (tmp_path / "other.json").exists()


def test_a_folder_without_estimates_is_one_line_that_says_how_to_get_them(run: Run, tmp_path: Path) -> None:
    result = run("propensity", tmp_path)
    assert result.status == 2
    assert "--randomised-lists" in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("learner", ["ipw", "cm-ipw"])
def test_the_estimates_beside_the_log_are_found(run: Run, log: Path, tmp_path: Path, learner: str) -> None:
    file = tmp_path / "given.json"
    (log / "propensity.json").rename(file)
    given = train(run, log, tmp_path / "given", "--learner", learner, "--propensities", file)
    assert given.status == 0, given.err
    file.rename(log / "propensity.json")
    assert train(run, log, tmp_path / "found", "--learner", learner).status == 0
    of_given, of_found = weights_in(tmp_path / "given", tmp_path / "found")
    assert of_given == of_found


@pytest.mark.parametrize("learner", ["ipw", "cm-ipw"])
def test_without_estimates_training_stops_with_one_line(run: Run, log: Path, tmp_path: Path, learner: str) -> None:
    (log / "propensity.json").unlink()
    result = train(run, log, tmp_path / "model", "--learner", learner)
    assert result.status == 2
    assert "--randomised-lists" in result.err.splitlines()[-1]
    assert "give propensities" in result.err.splitlines()[-1]
    assert not (tmp_path / "model").exists()


@pytest.mark.thorough
def test_examination_in_the_log_serves_ipw_where_there_is_no_estimate(run: Run, tiny: Path, tmp_path: Path) -> None:
    simulate(run, tiny, tmp_path / "log", "--randomised-lists", 0, "--keep-examination")
    assert train(run, tmp_path / "log", tmp_path / "model", "--learner", "ipw").status == 0
    assert train(run, tmp_path / "log", tmp_path / "cascade", "--learner", "cm-ipw").status == 2


def test_other_learners_do_not_take_propensities(run: Run, log: Path, tmp_path: Path) -> None:
    result = train(run, log, tmp_path / "model", "--learner", "naive", "--propensities", log / "propensity.json")
    assert result.status == 2
    assert (
        "naive does not use it; remove it, or choose another --learner: cm-ipw, doubly-robust, ipw"
        in result.err.replace("\n", " ")
    )


@pytest.mark.thorough
@pytest.mark.parametrize("learner", [name for name in LEARNERS.names() if not LEARNERS.get(name).takes_propensities])
def test_no_other_learner_notices_that_the_estimates_are_garbage(
    run: Run, log: Path, tmp_path: Path, learner: str
) -> None:
    config = configure(learner, settings={"training.steps": 4, "training.batch_size": 8})
    with_estimates = fit(FitRequest(TrainingLog.of_folder(log), config)).best
    (log / "propensity.json").write_bytes(b"\xff not even JSON")
    result = train(run, log, tmp_path / "without", "--learner", learner)
    assert result.status == 0, result.err
    assert with_estimates is not None
    expected, found = with_estimates.policy, load_policy(tmp_path / "without")
    assert found.settings() == expected.settings()
    assert weights(found) == weights(expected)
    assert found.arrays() or found.settings()


@pytest.mark.parametrize("learner", ["ipw", "cm-ipw"])
def test_the_two_learners_that_read_the_estimates_do_notice(run: Run, log: Path, tmp_path: Path, learner: str) -> None:
    (log / "propensity.json").write_bytes(b"\xff not even JSON")
    verified, unverified = (
        train(run, log, tmp_path / "model", "--learner", learner, *option) for option in ((), ("--no-verify",))
    )
    assert (verified.status, unverified.status) == (2, 2)
    assert "propensity.json: damaged: it does not match its hash" in verified.err
    assert "propensity.json: not valid JSON" in unverified.err


def test_a_model_shows_the_examination_that_it_estimated(run: Run, tmp_path: Path) -> None:
    table = np.array([[1.0, np.nan, np.nan], [0.8, 0.5, np.nan]])
    members = [LinearPolicy(np.ones(2, np.float32), Normaliser("none", np.empty(0), np.empty(0)))]
    save_policy(EnsemblePolicy(members, [1.0], examination=table), tmp_path / "model")
    shown = run("propensity", tmp_path / "model", "--plot", tmp_path / "plot.png", "--out", tmp_path / "own.json")
    assert shown.status == 0, shown.err
    assert [line.split() for line in shown.out.splitlines() if line.strip()[:1].isdigit()] == [
        ["1", "1.0000"],
        ["2", "0.8000", "0.5000"],
    ]
    assert (tmp_path / "plot.png").stat().st_size > 1_000
    assert read_propensities(tmp_path / "own.json").examination == Estimate((1.0, 0.8))
    printed = run("propensity", tmp_path / "model", "--json")
    assert json.loads(printed.out) == {"examination": [[1.0, None, None], [0.8, 0.5, None]]}
    save_policy(members[0], tmp_path / "linear")
    refused = run("propensity", tmp_path / "linear")
    assert refused.status == 2
    assert "this model does not estimate examination" in refused.err


def test_a_model_of_a_log_with_context_shows_a_curve_for_each_level(run: Run, tmp_path: Path) -> None:
    table = np.array([[1.0, np.nan, np.nan], [0.8, 0.5, np.nan]])
    curves = ContextCurves(("desktop", "mobile"), np.stack([table, table**2]), np.array([1.1, 0.9]))
    members = [LinearPolicy(np.ones(2, np.float32), Normaliser("none", np.empty(0), np.empty(0)))]
    save_policy(EnsemblePolicy(members, [1.0], examination=table, by_context=curves), tmp_path / "model")
    shown = run("propensity", tmp_path / "model", "--plot", tmp_path / "plot.svg")
    assert shown.status == 0, shown.err
    assert [line.split() for line in shown.out.splitlines() if line.strip()[:1].isdigit()] == [
        ["1", "1.0000", "1.0000"],
        ["2", "0.8000", "0.6400"],
        ["1", "1.0000"],
        ["2", "0.8000", "0.5000"],
    ]
    drawn = (tmp_path / "plot.svg").read_text()
    assert "<!-- desktop -->" in drawn
    assert "<!-- mobile -->" in drawn
    printed = json.loads(run("propensity", tmp_path / "model", "--json").out)
    assert printed["by_context"]["mobile"] == {"examination": [[1.0, None, None], [0.8**2, 0.5**2, None]], "scale": 0.9}
