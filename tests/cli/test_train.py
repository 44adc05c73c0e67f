import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.cli.train_messages import _tell_result
from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import load_click_log, save_click_log
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.model_folder import load_policy
from cuolr.training.base_learner import LEARNERS
from cuolr.training.fit import FitRequest, ModelFolder
from cuolr.training.log_form import TrainingLog
from cuolr.training.loop import Best, TrainingResult
from cuolr.training.presets.configure import configure
from cuolr.training.run_folder import RunFolder
from tests.cli.conftest import Result, Run
from tests.small_log import linear_policy, small_log

SMALL = ("--steps", 6, "--batch-size", 8, "--set", "learner.hidden=[8, 8]", "--set", "training.validate_every=2")


@pytest.fixture
def log(run: Run, tiny: Path, tmp_path: Path) -> Path:
    """A simulated log of the small data set."""
    folder = tmp_path / "log"
    arguments = ("simulate", "--data", tiny, "--click-model", "pbm", "--sessions", 400, "--randomised-lists", 0)
    result = run(*arguments, "--out", folder)
    assert result.status == 0, result.err
    return folder


def train(run: Run, log: Path, out: Path, *more: object) -> Result:
    learner = () if "--learner" in more else ("--learner", "cql")
    return run("train", log, "--out", out, *learner, *SMALL, *more)


def weights(folder: Path) -> bytes:
    (file,) = folder.glob("model-*.safetensors")
    return file.read_bytes()


def press_twice(*arguments: object) -> None:
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)


def description(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "model.json").read_text())
    return content


def test_a_log_is_all_it_takes(run: Run, log: Path, tmp_path: Path) -> None:
    result = train(run, log, tmp_path / "model")
    assert result.status == 0, result.err
    assert "held-out score" in result.err
    assert result.out == ""
    candidates = load_click_log(log).candidates
    assert load_policy(tmp_path / "model").rank(candidates, 5).shape == (60, 5)


@pytest.mark.parametrize("learner", ["sac", "cql", "bc"])
def test_learners_and_encoders_are_found_by_name(run: Run, log: Path, tmp_path: Path, learner: str) -> None:
    result = train(run, log, tmp_path / "model", "--learner", learner, "--encoder", "position")
    assert result.status == 0, result.err
    settings = description(tmp_path / "model")["provenance"]["settings"]["learner"]
    assert (settings["name"], settings["encoder"], settings["hidden"]) == (learner, "position", [8, 8])


@pytest.mark.thorough
def test_products_can_be_in_bfloat16(run: Run, log: Path, tmp_path: Path) -> None:
    for precision in ("float32", "bfloat16"):
        result = train(run, log, tmp_path / precision, "--precision", precision)
        assert result.status == 0, result.err
        assert description(tmp_path / precision)["provenance"]["settings"]["learner"]["precision"] == precision
    assert weights(tmp_path / "float32") != weights(tmp_path / "bfloat16")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("has", "rounding", "precision", "said"),
    [
        (True, 0.02, "bfloat16", "precision: bfloat16, the processor has bfloat16"),
        (False, 0.02, "float32", "precision: float32, the processor has no bfloat16"),
        (True, 0.0, "float32", "precision: float32, losses differ"),
    ],
)
def test_precision_auto_is_bfloat16_where_it_is_native_and_changes_no_loss(
    run: Run,
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has: bool,
    rounding: float,
    precision: str,
    said: str,
) -> None:
    monkeypatch.setattr("cuolr.learners.rl.sequential.has_bfloat16", lambda: has)
    monkeypatch.setattr("cuolr.learners.rl.sequential.ROUNDING", rounding)
    result = train(run, log, tmp_path / "auto", "--precision", "auto")
    assert said in result.err
    assert train(run, log, tmp_path / "given", "--precision", precision).status == 0
    assert weights(tmp_path / "auto") == weights(tmp_path / "given")
    assert description(tmp_path / "auto")["provenance"]["precision"]["chosen"] == precision


@pytest.mark.thorough
def test_it_is_said_that_clicks_choose_badly_among_the_steps_of_a_critic(run: Run, log: Path, tmp_path: Path) -> None:
    result = train(run, log, tmp_path / "model")
    assert "note: held-out clicks predict the best step poorly; --set training.keep=last" in result.err


@pytest.mark.thorough
def test_labels_choose_the_model_where_they_are_given(run: Run, log: Path, tiny: Path, tmp_path: Path) -> None:
    result = train(run, log, tmp_path / "model", "--validate", tiny, "--measure", "ndcg@5")
    assert result.status == 0, result.err
    provenance = description(tmp_path / "model")["provenance"]
    assert provenance["settings"]["validated_by"] == {"data": str(tiny), "fold": 1, "measure": "ndcg@5"}
    assert "validating by ndcg@5, queries without a relevant document skipped" in result.err
    score, step = provenance["training"]["validation"], provenance["training"]["step"]
    assert f"ndcg@5 {score:.4f} at step {step} of 6" in result.err
    assert json.loads((tmp_path / "model" / "assessment.json").read_text())["trained_on_these_queries"]
    assert "queries that it was trained on" in result.err
    evaluated = run("evaluate", tmp_path / "model", "--data", tiny, "--split", "vali", "--measures", "ndcg@5", "--json")
    assert json.loads(evaluated.out)["measures"]["ndcg@5"] == pytest.approx(score)


@pytest.mark.thorough
def test_a_measure_is_the_same_however_it_is_written(run: Run, log: Path, tiny: Path, tmp_path: Path) -> None:
    result = train(run, log, tmp_path / "model", "--validate", tiny, "--measure", "ndcg@010")
    assert result.status == 0, result.err
    assert description(tmp_path / "model")["provenance"]["settings"]["validated_by"]["measure"] == "ndcg@10"


@pytest.mark.thorough
def test_what_a_preset_cannot_make_as_in_the_paper_is_told(run: Run, log: Path, tiny: Path, tmp_path: Path) -> None:
    # Without a list behind them, the values were given.
    for lists in (9_999_999, 10_000_000, 0):
        content = {"lists": lists, "examination": [1] * 10}
        (tmp_path / f"{lists}.json").write_text(json.dumps(content))

    def notes(*more: object) -> list[str]:
        result = train(run, log, tmp_path / "model", "--learner", "ipw", "--overwrite", *more)
        assert result.status == 0, result.err
        return [line for line in result.err.splitlines() if line.startswith("note: unlike the paper")]

    paper, few, enough, given = ("--preset", "paper"), *(tmp_path / f"{n}.json" for n in (9_999_999, 10_000_000, 0))
    labels = ("--validate", tiny)
    assert notes("--propensities", few) == []
    assert notes(*paper, *labels, "--propensities", enough) == notes(*paper, *labels, "--propensities", given) == []
    (of_lists,) = notes(*paper, *labels, "--propensities", few)
    assert of_lists.endswith("which uses 10,000,000 random lists, propensities are from 9,999,999")
    (of_choice,) = notes(*paper, "--propensities", enough)
    assert of_choice.endswith("the model is chosen by held-out clicks, for lack of --validate")
    (of_measure,) = notes(*paper, *labels, "--measure", "err@10", "--propensities", enough)
    assert of_measure.endswith("which uses ndcg@10, the model is chosen by err@10")


@pytest.mark.thorough
def test_the_model_says_where_it_comes_from(run: Run, log: Path, tmp_path: Path) -> None:
    train(run, log, tmp_path / "model", "--preset", "paper", "--seed", 7)
    content = description(tmp_path / "model")
    provenance = content["provenance"]
    assert provenance["preset"] == "paper"
    assert provenance["log"]["source"]["click_model"]["name"] == "pbm"
    assert (provenance["training"]["steps"], provenance["training"]["finished"]) == (6, True)
    assert provenance["settings"]["training"]["seed"] == 7
    assert {"cuolr", "torch", "numpy", "python"} <= set(provenance["versions"])


@pytest.mark.thorough
def test_what_made_the_log_changes_no_weight(run: Run, log: Path, tmp_path: Path) -> None:
    train(run, log, tmp_path / "before")
    meta = json.loads((log / "meta.json").read_text())
    meta["source"] = {"click_model": {"name": "cascade"}, "policy": "none", "max_grade": 99}
    (log / "meta.json").write_text(json.dumps(meta))
    train(run, log, tmp_path / "after", "--no-verify")
    assert weights(tmp_path / "before") == weights(tmp_path / "after")
    assert description(tmp_path / "after")["provenance"]["log"]["source"]["max_grade"] == 99


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_model_and_another_one_does_not(run: Run, log: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(run, log, tmp_path / name, "--seed", seed)
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


@pytest.mark.thorough
def test_a_stopped_run_is_resumed_as_if_it_had_not_been(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(run, log, tmp_path / "whole")
    note = RunFolder.log

    def note_and_press(self: RunFolder, values: Mapping[str, Any]) -> None:
        note(self, values)
        if values["step"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "log", note_and_press)
        stopped = train(run, log, tmp_path / "parts")
    assert stopped.status == 130
    assert f"stopped after step 3, the best model so far is of step 2; continue from the checkpoint in {tmp_path}" in (
        stopped.err.replace("\n", " ")
    )
    load_policy(tmp_path / "parts")
    resumed = train(run, log, tmp_path / "parts", "--resume")
    assert resumed.status == 0, resumed.err
    assert weights(tmp_path / "whole") == weights(tmp_path / "parts")
    steps = [json.loads(line)["step"] for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()]
    assert steps == [1, 2, 3, 4, 5, 6]


@pytest.mark.thorough
def test_labels_are_the_same_whatever_path_leads_to_them(
    run: Run, log: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny.parent)
    assert train(run, log, tmp_path / "model", "--validate", tiny.name).status == 0
    resumed = train(run, log, tmp_path / "model", "--validate", tiny, "--resume")
    assert resumed.status == 0, resumed.err


@pytest.mark.thorough
def test_ctrl_c_twice_says_where_to_go_on(run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "log", press_twice)
        stopped = train(run, log, tmp_path / "model")
    assert stopped.status == 130
    assert "stopped at once; continue from the last checkpoint in" in stopped.err.replace("\n", " ")
    assert train(run, log, tmp_path / "model", "--resume").status == 0


@pytest.mark.thorough
def test_fewer_steps_than_were_made_are_refused(run: Run, log: Path, tmp_path: Path) -> None:
    assert train(run, log, tmp_path / "model").status == 0
    fewer = train(run, log, tmp_path / "model", "--resume", "--steps", 4)
    assert fewer.status == 2
    assert "has been trained for 6 steps already; steps must be at least 6" in fewer.err


@pytest.mark.thorough
def test_the_old_model_stays_until_there_is_a_new_one(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(run, log, tmp_path / "model")
    before = weights(tmp_path / "model")

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "log", press_twice)
        assert train(run, log, tmp_path / "model", "--overwrite", "--seed", 2).status == 130
    assert weights(tmp_path / "model") == before
    load_policy(tmp_path / "model")
    assert train(run, log, tmp_path / "model", "--overwrite", "--seed", 2).status == 0
    assert weights(tmp_path / "model") != before


def sparse_file(path: Path, *indices: int) -> Path:
    """Two labelled documents of one query, of which the second has these features."""
    named = " ".join(f"{index}:1" for index in indices)
    path.write_text(f"0 qid:1 1:1 # docid = a\n1 qid:1 {named} # docid = b\n")
    return path


@pytest.mark.thorough
def test_labels_of_other_features_are_filled_up_or_refused_before_anything_starts(
    run: Run, log: Path, tmp_path: Path
) -> None:
    found = load_click_log(log).candidates.n_features
    wide = sparse_file(tmp_path / "wide.txt", 2, found + 1)
    refused = train(run, log, tmp_path / "model", "--validate", wide)
    assert refused.status == 2
    assert f"wide.txt: has {found + 1} features, but the model has {found}" in refused.err
    assert not (tmp_path / "model").exists()
    narrow = sparse_file(tmp_path / "narrow.txt", 2, found - 1)
    filled = train(run, log, tmp_path / "model", "--validate", narrow)
    assert filled.status == 0, filled.err
    assert f"narrow.txt: has {found - 1} features, but the model has {found}" in filled.err.replace("\n", " ")
    evaluated = run("evaluate", tmp_path / "model", "--data", narrow, "--json")
    assert evaluated.status == 0, evaluated.err
    compared = run("compare", tmp_path / "model", tmp_path / "model", "--data", wide)
    assert compared.status == 2
    assert f"but the model has {found}" in compared.err.replace("\n", " ")


def test_a_measure_without_anything_to_measure_on_is_refused(run: Run, log: Path, tmp_path: Path) -> None:
    for measure in ("foo", "ndcg@10"):
        refused = train(run, log, tmp_path / "model", "--measure", measure)
        assert refused.status == 2
        assert f"--measure {measure}: needs --validate" in refused.err


def test_a_seed_beyond_all_generators_is_refused(run: Run, log: Path, tmp_path: Path) -> None:
    refused = train(run, log, tmp_path / "model", "--seed", 99999999999999999999)
    assert refused.status == 2
    assert "setting 'training.seed': expected 0 to 2147483647" in refused.err
    assert not (tmp_path / "model").exists()


@pytest.mark.thorough
def test_without_labels_it_is_said_that_the_last_step_may_be_better(
    run: Run, log: Path, tiny: Path, tmp_path: Path
) -> None:
    note = "--set training.keep=last keeps the last step"
    for more, expected in (
        ((), True),
        (("--set", "training.keep=last"), False),
        (("--validate", tiny), False),
    ):
        result = train(run, log, tmp_path / "model", "--overwrite", *more)
        assert result.status == 0, result.err
        assert (note in result.err.replace("\n", " ")) is expected


@pytest.mark.thorough
def test_a_run_of_other_settings_or_of_another_log_is_not_resumed(run: Run, log: Path, tmp_path: Path) -> None:
    train(run, log, tmp_path / "model")
    changed = train(run, log, tmp_path / "model", "--resume", "--set", "learner.conservative_weight=0.5", "--seed", 9)
    assert changed.status == 2
    assert "learner.conservative_weight was" in changed.err
    assert "training.seed was 1, is 9 now" in changed.err
    assert "log was" not in changed.err
    shorter = load_click_log(log).select(np.arange(300))
    save_click_log(shorter, tmp_path / "shorter")
    other = train(run, tmp_path / "shorter", tmp_path / "model", "--resume")
    assert other.status == 2
    assert "belongs to another log; start again with overwrite" in other.err


@pytest.mark.thorough
def test_a_model_is_not_overwritten_unless_asked_for(run: Run, log: Path, tmp_path: Path) -> None:
    train(run, log, tmp_path / "model")
    refused = train(run, log, tmp_path / "model", "--seed", 2)
    assert refused.status == 2
    assert "continue it with resume, or start again with overwrite" in refused.err.replace("\n", " ")
    assert train(run, log, tmp_path / "model", "--seed", 2, "--overwrite").status == 0
    assert description(tmp_path / "model")["provenance"]["settings"]["training"]["seed"] == 2


@pytest.mark.thorough
def test_sessions_of_one_list_become_one_row_by_default(run: Run, log: Path, tmp_path: Path) -> None:
    rows = len(aggregate(load_click_log(log)))
    assert f"400 sessions in {rows} rows" in train(run, log, tmp_path / "a").err
    assert "400 sessions in 400 rows" in train(run, log, tmp_path / "b", "--aggregate", "no").err
    assert rows <= 60


@pytest.mark.thorough
def test_lists_that_were_drawn_at_random_are_left_as_they_are(run: Run, tiny: Path, tmp_path: Path) -> None:
    arguments = ("simulate", "--data", tiny, "--click-model", "pbm", "--sessions", 300, "--temperature", 1)
    run(*arguments, "--randomised-lists", 1_000, "--out", tmp_path / "log")
    assert "300 sessions in 300 rows" in train(run, tmp_path / "log", tmp_path / "a").err
    rows = len(aggregate(load_click_log(tmp_path / "log")))
    assert f"300 sessions in {rows} rows" in train(run, tmp_path / "log", tmp_path / "b", "--aggregate", "yes").err


@pytest.mark.thorough
def test_naive_and_its_kind_always_learn_from_one_row_for_each_list(run: Run, tiny: Path, tmp_path: Path) -> None:
    arguments = ("simulate", "--data", tiny, "--click-model", "pbm", "--sessions", 300, "--temperature", 0.01)
    run(*arguments, "--randomised-lists", 1_000, "--out", tmp_path / "log")
    rows = len(aggregate(load_click_log(tmp_path / "log")))
    assert rows < 300
    for learner in ("naive", "ipw", "cm-ipw"):
        if learner != "cm-ipw":  # it aggregates by itself, once clicks have their weights
            result = train(run, tmp_path / "log", tmp_path / learner, "--learner", learner, "--aggregate", "no")
            assert (result.status, len(result.err.splitlines())) == (2, 1)
            assert f"aggregate: {learner} always learns from aggregated lists" in result.err
        read = 300 if learner == "cm-ipw" else rows
        told = train(run, tmp_path / "log", tmp_path / learner, "--learner", learner).err
        assert f"300 sessions in {read} rows" in told


@pytest.mark.thorough
def test_a_learner_that_needs_sessions_gets_them(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LEARNERS.get("sac"), "log_form", "sessions")
    assert "400 sessions in 400 rows" in train(run, log, tmp_path / "a", "--learner", "sac").err
    forced = train(run, log, tmp_path / "b", "--learner", "sac", "--aggregate", "yes")
    assert forced.status == 2
    assert "needs the clicks of each session" in forced.err
    save_click_log(aggregate(load_click_log(log)), tmp_path / "aggregated")
    refused = train(run, tmp_path / "aggregated", tmp_path / "c", "--learner", "sac")
    assert refused.status == 2
    assert "sac needs the clicks of each session" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learner", "cqll"], "unknown learner 'cqll' (did you mean 'cql'?)"),
        (["--preset", "papers"], "unknown preset 'papers' (did you mean 'paper'?)"),
        (["--encoder", "atention"], "unknown encoder 'atention' (did you mean 'attention'?)"),
        (["--set", "learner.conservative_wieght=1"], "did you mean 'learner.conservative_weight'?"),
        (["--set", "conservative_weight=1"], "(did you mean 'learner.conservative_weight'?)"),
        (["--set", "steps=1"], "'learner.' or 'training.' (did you mean 'training.steps'?)"),
        (["--set", "weight=1"], "expected a name that starts with 'learner.' or 'training.'"),
        (["--set", "learner.conservative_weight"], "expected <name>=<value>"),
        (["--set", "learner.conservative_weight=much"], "expected a number, found 'much'"),
        (["--set", "learner.hidden=[8]"], "setting 'learner.hidden'"),
        (["--set", "learner.encoder_settings.haeds=2"], "haeds"),
        (["--steps", "0"], "setting 'training.steps': expected a whole number >= 1, found 0"),
        (["--set", "training.normalising=minmax"], "setting 'training.normalising': expected one of 'min-max'"),
        (["--set", "training.held_out=1.0"], "setting 'training.held_out': expected above 0 and below 1"),
        (["--validate", "nowhere"], "nowhere: not found; expected the folder of a data set or a LETOR file"),
        (["--resume"], "nothing to resume"),
    ],
)
def test_bad_settings_are_one_line_and_leave_nothing(
    run: Run, log: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = train(run, log, tmp_path / "model", *arguments)
    assert result.status == 2
    assert message in result.err.replace("\n", " ")
    assert "Traceback" not in result.err
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("learner", ["factored", "lightgbm"])
def test_a_batch_size_that_would_change_nothing_is_refused(run: Run, log: Path, tmp_path: Path, learner: str) -> None:
    result = run("train", log, "--learner", learner, "--batch-size", 8, "--out", tmp_path / "model")
    assert result.status == 2
    assert f"--batch-size 8: {learner} does not use it" in result.err


@pytest.mark.parametrize(("flag", "value"), [("--encoder", "attention"), ("--propensities", "p.json")])
def test_a_flag_that_the_learner_does_not_take_is_refused_by_its_name(
    run: Run, log: Path, tmp_path: Path, flag: str, value: str
) -> None:
    result = run("train", log, flag, value, "--out", tmp_path / "model")
    assert result.status == 2
    assert f"{flag} {value}: factored does not use it; remove it, or choose another --learner" in result.err.replace(
        "\n", " "
    )


def test_a_learner_without_an_ensemble_is_not_trained_on_a_cluster(run: Run, log: Path, tmp_path: Path) -> None:
    result = run("train", log, "--learner", "sac", "--ray", "10.0.0.1:6379", "--out", tmp_path / "model")
    assert result.status == 2
    assert "--ray 10.0.0.1:6379: sac does not use it; remove it, or choose another --learner" in result.err


def test_a_cluster_that_is_not_there_is_told(run: Run, log: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    result = run("train", log, "--learner", "naive", "--ray", "127.0.0.1:9", "--out", tmp_path / "model")
    assert result.status == 2
    assert "ray: no Ray cluster at '127.0.0.1:9'" in result.err


@pytest.mark.thorough
def test_propensities_are_the_same_however_their_path_is_spelt(
    run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    simulated = ("simulate", "--data", tiny, "--click-model", "pbm", "--sessions", 400, "--randomised-lists", 2_000)
    assert run(*simulated, "--out", "LOG").status == 0
    small = ("--learner", "cm-ipw", "--steps", 4, "--set", "learner.hidden=[8]", "--out", "MODEL")
    assert run("train", "LOG", *small).status == 0
    resumed = run("train", tmp_path / "LOG", *small, "--resume")
    assert resumed.status == 0, resumed.err


def test_what_is_no_log_is_refused(run: Run, tmp_path: Path) -> None:
    result = train(run, tmp_path, tmp_path / "model")
    assert result.status == 2
    assert "not a click log: it has no sessions.parquet" in result.err


def test_a_log_in_place_of_a_model_and_the_other_way_round_are_named(run: Run, log: Path, tmp_path: Path) -> None:
    assert train(run, log, tmp_path / "model").status == 0
    assert run("assess", log, tmp_path / "model").err == f"error: {log}: expected a saved model, found a click log\n"
    assert run("log-info", tmp_path / "model").err == (
        f"error: {tmp_path / 'model'}: expected a click log, found a model\n"
    )


@pytest.mark.thorough
def test_the_default_model_is_assessed_and_its_examination_kept(run: Run, log: Path, tmp_path: Path) -> None:
    small = ("--steps", 4, "--set", "learner.click_rates.prior_steps=5", "--set", "training.validate_every=2")
    result = run("train", log, "--out", tmp_path / "model", *small, "--json")
    assert result.status == 0, result.err
    assert description(tmp_path / "model")["policy"] == "ensemble"
    told = json.loads((tmp_path / "model" / "assessment.json").read_text())
    assert not told["trained_on_these_queries"]
    printed = json.loads(result.out)
    assert (printed["out"], printed["steps"], printed["assessment"]) == (str(tmp_path / "model"), 4, told)
    assert "held-out quer" in result.err
    assert f"{told['recommendation']}: " in result.err
    assert "of the score comes from a model of the current ranker" in result.err
    assert "weak guide" not in result.err
    again = run("assess", tmp_path / "model", log, "--json")
    assert json.loads(again.out)["gain"] == told["gain"], "on its own log, just what was held out counts"
    table = run("assess", tmp_path / "model", log)
    assert "never shown in the log" in table.out
    assert table.out.splitlines()[-1].startswith(("ship: ", "test: ", "keep: "))


@pytest.mark.thorough
def test_the_paper_s_preset_is_of_cql(run: Run, log: Path, tmp_path: Path) -> None:
    result = run("train", log, "--out", tmp_path / "model", "--preset", "paper", *SMALL)
    assert result.status == 0, result.err
    assert description(tmp_path / "model")["policy"] == "sequential"


def test_that_only_the_logging_policy_was_kept_is_said_with_its_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = small_log(60)
    save_click_log(log, tmp_path / "LOG")
    from_clicks = of_logging_policy = linear_policy(log)
    kept = EnsemblePolicy([from_clicks, of_logging_policy], [0.0, 1.0], logging_policy_members=[1])
    result = TrainingResult(Best(kept, None, 0), 0, "finished", {}, {})
    folder = ModelFolder(tmp_path / "MODEL")
    request = FitRequest(TrainingLog.of_folder(tmp_path / "LOG"), configure("factored"), folder=folder)
    _tell_result(result, request, None)
    wrote, keep = capsys.readouterr().err.splitlines()
    assert wrote == f"wrote {tmp_path / 'MODEL'}"
    assert keep.startswith("keep: clicks do not show a gain over the logging policy, or cannot be told from position")
