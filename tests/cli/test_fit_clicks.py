import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import load_click_log, read_meta, save_click_log
from tests.cli.conftest import Run
from tests.clicks.fitting.every_outcome import random_log
from tests.small_log import small_log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    save_click_log(random_log("dcm", sessions=2_000), tmp_path / "log")
    return tmp_path / "log"


def test_the_best_model_and_its_parameters_are_shown(run: Run, log: Path) -> None:
    result = run("fit-clicks", log, "--click-models", "pbm", "dcm", "ctr", "cascade", "--samples", 3)
    assert result.status == 0, result.err
    assert "Best click model: dcm; the difference to the others is more than noise." in result.out
    assert "impossible: " in result.out
    assert "parameters of dcm" in result.out
    assert "documents without sessions" in result.out
    assert result.out.index(" dcm ") < result.out.index(" pbm ") < result.out.index(" ctr ")


def test_programs_get_valid_json_with_everything(run: Run, log: Path) -> None:
    result = run("fit-clicks", log, "--click-models", "dcm", "cascade", "--samples", 3, "--json")
    found = json.loads(result.out, parse_constant=lambda constant: pytest.fail(constant))
    assert (found["best"], found["not_distinguishable"]) == ("dcm", [])
    assert found["train_sessions"] + found["held_out_sessions"] == 2_000
    assert found["models"]["cascade"]["log_likelihood"] is None
    assert found["models"]["cascade"]["impossible_sessions"] > 0
    assert len(found["models"]["dcm"]["conditional_perplexity_by_position"]) == 5
    values, (low, high) = (found["parameters"]["continuation"][name] for name in ("values", "interval"))
    assert values[-1] is None
    assert all(a < value < b for a, value, b in zip(low[:4], values[:4], high[:4], strict=True))
    assert 0 < found["unseen"]["attractiveness"] < 1


def test_without_names_all_models_are_fitted(run: Run, log: Path) -> None:
    found = json.loads(run("fit-clicks", log, "--samples", 0, "--json").out)
    assert found["best"] == "dcm"
    assert {"pbm", "ubm", "dcm", "ccm", "dbn", "sdbn", "cascade", "trust", "ctr-document"} <= set(found["models"])


def test_fitted_users_are_simulated_on_their_log_and_on_labelled_data(
    run: Run, log: Path, tiny: Path, tmp_path: Path
) -> None:
    users, plot = tmp_path / "users.toml", tmp_path / "fit.svg"
    fitted = run("fit-clicks", log, "--click-models", "dcm", "--samples", 2, "--out", users, "--plot", plot)
    assert fitted.status == 0
    note, *wrote = fitted.err.splitlines()
    assert "position bias is only in part identifiable" in note
    assert wrote == [f"wrote {users}", f"wrote {plot}"]
    assert plot.read_text().startswith("<?xml")
    again = tmp_path / "again"
    result = run("simulate", "--data", log, "--click-model", users, "--sessions", 4_000, "--out", again, "--json")
    expected = json.loads(result.out)["expected_clicks_per_session"]
    simulated = load_click_log(again)
    assert simulated.clicks.sum() / 4_000 == pytest.approx(expected, abs=0.1)
    assert load_click_log(log).clicks.sum() / 2_000 == pytest.approx(expected, abs=0.1)
    assert read_meta(again)["source"]["users"] == str(users)
    refitted = json.loads(run("fit-clicks", again, "--click-models", "dcm", "pbm", "--samples", 0, "--json").out)
    assert refitted["best"] == "dcm"
    more = ("--sessions", 50, "--out", tmp_path / "labelled", "--randomised-lists", 0)
    assert run("simulate", "--data", tiny, "--click-model", users, *more).status == 0
    assert read_meta(tmp_path / "labelled")["source"]["click_model"]["name"] == "dcm"


def test_a_model_can_be_tried_on_the_users(run: Run, log: Path, tmp_path: Path) -> None:
    users, out = tmp_path / "users.toml", tmp_path / "tried"
    assert run("fit-clicks", log, "--click-models", "pbm", "--samples", 0, "--out", users).status == 0
    arguments = ("simulate", "--data", log, "--click-model", users, "--sessions", 90, "--out", out)
    result = run(*arguments, "--logging", "random")
    assert result.status == 0, result.err
    assert "expected clicks per session: " in result.err
    rankings = load_click_log(out)
    assert len(np.unique(rankings.ranking[rankings.query == rankings.query[0]], axis=0)) == 1
    for more, problem in (
        (("--logging", "ranksvm"), "--logging ranksvm: needs labels, but --data is a click log"),
        (("--temperature", 1), "--temperature: not possible if --data is a click log"),
        (("--save-logging", tmp_path / "x"), "--save-logging: not possible if --data is a click log"),
        (("--context", "device=a:1"), "--context: not possible if --data is a click log"),
        (("--keep-examination",), "--keep-examination: not possible if --data is a click log"),
        (("--noise", 0.1), "--eta and --noise: not possible if --data is a click log"),
        (("--click-model", "pbm"), "on a click log, expected the file of `cuolr fit-clicks LOG --out users.toml`"),
        (("--out", log), "is the log to simulate on; choose another folder"),
    ):
        result = run(*arguments, "--overwrite", *more)
        assert (result.status, len(result.err.splitlines())) == (2, 1), result.err
        assert problem in result.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--click-models", "pmb"], "unknown fitted click model 'pmb' (did you mean 'pbm'?)"),
        (["--click-models"], "--click-models: expected auto or names of click models, found none"),
        (["--samples", 1], "--samples: expected 0 or at least 2, found 1"),
        (["--samples", -1], "--samples: expected a whole number >= 0, found -1"),
        (["--out", "users.json"], "users.json: expected a name that ends in .toml"),
        (["--plot", "fit.gif"], "fit.gif: expected a name that ends in .png, .svg, .pdf"),
        (["--click-models", "ctr", "--out", "users.toml"], "--out: ctr: a click rate is not a model of users"),
    ],
)
def test_bad_arguments_are_one_line_before_any_work(
    run: Run, tmp_path: Path, arguments: list[object], problem: str
) -> None:
    result = run("fit-clicks", tmp_path / "nothing", *arguments)
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert problem in result.err


def test_existing_files_are_not_replaced(run: Run, log: Path, tmp_path: Path) -> None:
    (tmp_path / "users.parquet").write_text("precious")
    result = run("fit-clicks", log, "--out", tmp_path / "users.toml")
    assert result.status == 2
    assert "users.parquet: already exists" in result.err


def test_logs_that_cannot_be_fitted_are_one_line(run: Run, tmp_path: Path) -> None:
    log = small_log(rows=60)
    logs = {
        "aggregated": (aggregate(log), "fitting click models needs the clicks of each session"),
        "unclicked": (replace(log, clicks=np.zeros_like(log.clicks)), "have no clicks"),
    }
    for name, (saved, problem) in logs.items():
        save_click_log(saved, tmp_path / name)
        result = run("fit-clicks", tmp_path / name)
        assert (result.status, len(result.err.splitlines())) == (2, 1), result.err
        assert problem in result.err
    assert "folder not found" in run("fit-clicks", tmp_path / "nowhere").err


def test_a_log_that_cannot_tell_position_from_attractiveness_has_a_note(run: Run, tmp_path: Path) -> None:
    log = random_log("pbm", sessions=400)
    fixed = replace(log, ranking=np.tile(np.arange(5, dtype=log.ranking.dtype), (400, 1)), logging_propensity=None)
    save_click_log(fixed, tmp_path / "log")
    result = run("fit-clicks", tmp_path / "log", "--click-models", "pbm", "--samples", 0)
    assert result.status == 0
    assert "position bias is not identifiable" in result.err


def test_parameters_can_come_from_features_also_of_documents_that_were_never_shown(run: Run, tmp_path: Path) -> None:
    log = random_log("pbm", sessions=300, k=3)
    save_click_log(log, tmp_path / "log")
    users = tmp_path / "users.toml"
    arguments = ("--click-models", "pbm", "--samples", 0, "--out", users, "--json")
    result = run("fit-clicks", tmp_path / "log", "--parameters", "both", *arguments)
    assert result.status == 0, result.err
    assert len(pl.read_parquet(tmp_path / "users.parquet")) == log.candidates.n_documents
    without = replace(log, candidates=replace(log.candidates, features=np.zeros_like(log.candidates.features)))
    save_click_log(without, tmp_path / "without")
    result = run("fit-clicks", tmp_path / "without", "--parameters", "features")
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert "without: the documents of this log have no features that differ" in result.err


def test_each_context_has_its_own_parameters_or_one_is_chosen(run: Run, tmp_path: Path) -> None:
    """Mobile users examine the first position only."""
    log = random_log("perfect", sessions=3_000)
    mobile = np.arange(3_000) % 3 == 0
    clicks = np.where(mobile[:, None] & (np.arange(log.k) > 0), 0, log.clicks).astype(np.uint8)
    device = np.where(mobile, "mobile", "desktop")
    save_click_log(replace(log, clicks=clicks, context={"device": device}), tmp_path / "log")
    arguments = ["fit-clicks", tmp_path / "log", "--click-models", "pbm", "--samples", 0]
    both, desktop = run(*arguments, "--json"), run(*arguments, "--json", "--context", "device=desktop")
    found = [json.loads(result.out) for result in (both, desktop)]
    assert found[0]["contexts"] == ["desktop", "mobile"]
    assert found[0]["if_alike"]["interval"][1] < 0
    curves = found[0]["parameters"]["examination"]["values"]
    assert min(curves[0]) > 0.8
    assert max(curves[1][1:]) < 0.01 < 0.8 < curves[1][0]
    assert found[1]["train_sessions"] + found[1]["held_out_sessions"] == 2_000
    assert min(found[1]["parameters"]["examination"]["values"]) > 0.8
    assert "contexts" not in found[1]
    shown = run(*arguments, "--out", tmp_path / "users.toml", "--plot", tmp_path / "fit.svg")
    assert "mobile, position 2" in shown.out
    assert "If all contexts had the same parameters, the log-likelihood would differ by -" in " ".join(
        shown.out.split()
    )
    assert (tmp_path / "fit.svg").is_file()
    for wrong in ("device=tv", "layout=grid", "mobile"):
        result = run(*arguments, "--context", wrong)
        assert (result.status, len(result.err.splitlines())) == (2, 1)
        assert f"--context: expected device=desktop or device=mobile, found '{wrong}'" in result.err


def test_levels_of_context_that_no_session_has_together_are_refused(run: Run, tmp_path: Path) -> None:
    log, mobile = random_log("pbm", sessions=200), np.arange(200) % 2 == 0
    context = {"device": np.where(mobile, "mobile", "desktop"), "layout": np.where(mobile, "list", "grid")}
    save_click_log(replace(log, context=context), tmp_path / "log")
    result = run("fit-clicks", tmp_path / "log", "--context", "device=mobile", "--context", "layout=grid")
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert "log: no session is in the context device=mobile, layout=grid" in result.err


def test_click_models_that_explain_less_than_a_click_rate_have_a_note(run: Run, tmp_path: Path) -> None:
    """In the cascade model no session has two clicks."""
    save_click_log(random_log("perfect", sessions=400), tmp_path / "log")
    result = run("fit-clicks", tmp_path / "log", "--click-models", "cascade", "ctr", "--samples", 0)
    assert "ctr predicts held-out clicks better than every click model that was fitted" in " ".join(result.err.split())


def test_click_models_that_explain_a_log_alike_are_named(run: Run, tmp_path: Path) -> None:
    save_click_log(random_log("perfect", sessions=60), tmp_path / "log")
    result = run("fit-clicks", tmp_path / "log", "--click-models", "pbm", "ubm", "--samples", 0)
    best, other = ("pbm", "ubm") if "Best click model: pbm" in result.out else ("ubm", "pbm")
    assert result.out.splitlines()[-1] == f"Best click model: {best}; not distinguishable from it: {other}."


def test_very_many_contexts_are_fitted_together_with_a_note(run: Run, tmp_path: Path) -> None:
    log = random_log("pbm", sessions=600)
    save_click_log(replace(log, context={"version": (np.arange(600) % 30).astype(np.str_)}), tmp_path / "log")
    result = run("fit-clicks", tmp_path / "log", "--click-models", "pbm", "--samples", 0)
    assert result.status == 0, result.err
    assert "all contexts have the same parameters; --context NAME=VALUE fits those of one" in " ".join(
        result.err.split()
    )


def test_long_tables_of_parameters_are_cut(run: Run, tmp_path: Path) -> None:
    save_click_log(random_log("perfect", sessions=300, k=20, queries=4), tmp_path / "log")
    result = run("fit-clicks", tmp_path / "log", "--click-models", "ubm", "--samples", 0)
    assert result.status == 0, result.err
    assert sum(line.startswith("  examination") for line in result.out.splitlines()) == 60 - 1
    assert "more are not shown; --json and --out have them" in result.out
    assert "documents without sessions" in result.out
    assert "intervals over sessions of these queries" in " ".join(result.out.split())


def test_the_last_days_can_be_held_out(run: Run, tmp_path: Path) -> None:
    log = random_log("pbm", sessions=1_000)
    timed = replace(log, timestamp=np.datetime64("2026-11-01") + np.arange(1_000) // 100)
    for saved, name in ((log, "log"), (timed, "timed")):
        save_click_log(saved, tmp_path / name)
    arguments = ["--click-models", "pbm", "--samples", 0, "--json", "--held-out-days"]
    found = json.loads(run("fit-clicks", tmp_path / "timed", *arguments, 3).out)
    assert (found["train_sessions"], found["held_out_sessions"]) == (700, 300)
    for name, days, problem in (("log", 1, "the log has no times"), ("timed", 10, "expected sessions to fit to")):
        result = run("fit-clicks", tmp_path / name, *arguments, days)
        assert (result.status, len(result.err.splitlines())) == (2, 1)
        assert problem in result.err
