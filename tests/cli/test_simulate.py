import json
from pathlib import Path

import numpy as np
import pytest

from cuolr.data.synthetic import generate, generate_splits
from cuolr.logs.log_folder import load_click_log, read_meta
from cuolr.policies.browsing_users import LastClickUsers
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.planned_policy import PlannedPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.cli.conftest import Run


def simulate(run: Run, data: Path, out: Path, *more: object) -> None:
    arguments = ("simulate", "--data", data, "--click-model", "pbm", "--sessions", 500, "--out", out)
    result = run(*arguments, "--randomised-lists", 0, *more)
    assert result.status == 0, result.err


def test_the_log_has_the_sessions_and_says_where_it_comes_from(run: Run, tiny: Path, tmp_path: Path) -> None:
    simulate(run, tiny, tmp_path / "log", "--eta", 2, "--noise", 0.2, "--seed", 5)
    log, meta = load_click_log(tmp_path / "log"), read_meta(tmp_path / "log")
    assert (log.sessions, log.k, log.candidates.n_queries) == (500, 10, 60)
    assert log.logging_propensity is None
    assert meta["source"]["click_model"]["name"] == "pbm"
    assert (meta["source"]["click_model"]["eta"], meta["source"]["click_model"]["noise"]) == (2, 0.2)
    assert meta["source"]["logging"] == {"name": "ranksvm", "fraction": 0.01, "seed": 5}


def test_the_same_seed_gives_the_same_log_byte_for_byte(run: Run, tiny: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        simulate(run, tiny, tmp_path / name)
    simulate(run, tiny, tmp_path / "c", "--seed", 2)
    logs = [(tmp_path / name / "sessions.parquet").read_bytes() for name in ("a", "b", "c")]
    assert logs[0] == logs[1] != logs[2]


def test_a_temperature_makes_the_logger_stochastic(run: Run, tiny: Path, tmp_path: Path) -> None:
    simulate(run, tiny, tmp_path / "log", "--temperature", 0.5)
    log = load_click_log(tmp_path / "log")
    assert log.logging_propensity is not None
    assert len(np.unique(log.ranking[log.query == 0], axis=0)) > 1


def test_a_saved_model_and_a_random_order_can_log(run: Run, tiny: Path, tmp_path: Path) -> None:
    policy = fit_ranksvm(generate("tiny", 60, seed=1), fraction=1.0)
    save_policy(policy, tmp_path / "model")
    simulate(run, tiny, tmp_path / "log", "--logging", tmp_path / "model")
    simulate(run, tiny, tmp_path / "random", "--logging", "random")
    log = load_click_log(tmp_path / "log")
    assert np.array_equal(log.ranking, policy.rank(log.candidates, 10)[log.query])
    assert not np.array_equal(log.ranking, load_click_log(tmp_path / "random").ranking)


def test_the_logging_policy_is_saved_as_a_model_that_can_be_evaluated(run: Run, tiny: Path, tmp_path: Path) -> None:
    simulate(run, tiny, tmp_path / "log", "--save-logging", tmp_path / "logging", "--fraction", 0.1)
    log = load_click_log(tmp_path / "log")
    assert np.array_equal(log.ranking, load_policy(tmp_path / "logging").rank(log.candidates, 10)[log.query])
    provenance = json.loads((tmp_path / "logging" / "model.json").read_text())["provenance"]
    assert (provenance["fold"], provenance["logging"]["fraction"]) == (1, 0.1)
    assert run("evaluate", tmp_path / "logging", "--data", tiny).status == 0
    simulate(run, tiny, tmp_path / "drawn", "--save-logging", tmp_path / "random", "--logging", "random", "--k", 3)
    simulate(run, tiny, tmp_path / "drawn", "--logging", tmp_path / "random", "--temperature", 1, "--overwrite")


def test_the_logging_policy_is_saved_outside_of_the_log_and_over_nothing(run: Run, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    arguments = ("simulate", "--data", tiny, "--click-model", "pbm", "--sessions", 9, "--out", tmp_path / "a" / "log")
    for place, problem in (
        (tmp_path / "a" / "log", "--save-logging: expected a folder outside the log"),
        (tmp_path / "a" / "log" / "model", "--save-logging: expected a folder outside the log"),
        (tmp_path / "a", "--save-logging: expected a folder outside the log"),
        (tmp_path / "precious", "precious: has no model.json, so it is not replaced"),
    ):
        result = run(*arguments, "--save-logging", place, "--overwrite")
        assert (result.status, len(result.err.splitlines())) == (2, 1)
        assert problem in result.err
    assert "already exists" in run(*arguments, "--save-logging", tmp_path / "precious").err
    assert not (tmp_path / "a").exists()


def test_a_click_model_can_come_from_a_file(run: Run, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "user.toml").write_text('name = "dcm"\ncontinuation = [0.5, 0.4]\n')
    users = ("--click-model", tmp_path / "user.toml", "--randomised-lists", 1_000)
    result = run("simulate", "--data", tiny, *users, "--sessions", 9, "--out", tmp_path / "log")
    assert result.status == 0
    assert read_meta(tmp_path / "log")["source"]["click_model"]["continuation"] == [0.5, 0.4]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--click-model", "pmb"], "unknown click model 'pmb' (did you mean 'pbm'?)"),
        (["--noise", 3], "setting 'noise': expected 0 to 1, found 3.0"),
        (
            ["--logging", "nobody"],
            "--logging: expected ranksvm, random, or the folder of a saved model, found 'nobody'",
        ),
        (["--seed", -1], "seed: expected a whole number >= 0, found -1"),
        (["--sessions", 0], "sessions: expected a whole number >= 1, found 0"),
        (["--fraction", 2], "fraction: expected above 0 and at most 1, found 2.0"),
        (["--temperature", 0], "temperature: expected a finite number above 0, found 0.0"),
        (["--fold", 9], "expected the folder Fold9, found folds 1"),
    ],
)
def test_bad_arguments_are_one_line_and_leave_nothing(
    run: Run, tiny: Path, tmp_path: Path, arguments: list[object], problem: str
) -> None:
    defaults = {"--data": tiny, "--click-model": "pbm", "--sessions": 9, "--out": tmp_path / "log"}
    changed = defaults | dict(zip(arguments[::2], arguments[1::2], strict=True))
    result = run("simulate", *(part for pair in changed.items() for part in pair))
    assert result.status == 2
    assert problem in result.err
    assert len(result.err.splitlines()) == 1
    assert not [path for path in tmp_path.iterdir() if "log" in path.name]


def test_lists_are_no_longer_than_the_longest_query(run: Run, tiny: Path, tmp_path: Path) -> None:
    longest = max(generate_splits("tiny", 60, 20, 20, seed=1)[0].candidates.sizes)
    arguments = ("simulate", "--data", tiny, "--click-model", "pbm", "--sessions", 9, "--randomised-lists", 0)
    result = run(*arguments, "--k", 1_000, "--out", tmp_path / "log")
    note = f"note: lists have {longest} documents instead of 1000, because no query has more"
    assert result.err.splitlines()[0] == note
    assert load_click_log(tmp_path / "log").k == longest


def test_a_policy_without_scores_has_no_temperature(run: Run, tiny: Path, tmp_path: Path) -> None:
    scorer = fit_ranksvm(generate("tiny", 50, seed=1))
    save_policy(PlannedPolicy(scorer, LastClickUsers(np.ones((3, 4))), 0.0, 1.0, 0.0), tmp_path / "planned")
    arguments = ("simulate", "--data", tiny, "--click-model", "pbm", "--sessions", 9, "--out", tmp_path / "log")
    result = run(*arguments, "--logging", tmp_path / "planned", "--temperature", 0.5)
    assert (result.status, result.err) == (
        2,
        f"error: --temperature: expected a logging policy that scores documents, found '{tmp_path / 'planned'}'\n",
    )


def test_eta_where_there_is_none_is_told(run: Run, tiny: Path, tmp_path: Path) -> None:
    simulate(run, tiny, tmp_path / "a", "--eta", 1)
    users = ("--click-model", "cascade", "--eta", 1, "--randomised-lists", 1_000)
    result = run("simulate", "--data", tiny, *users, "--sessions", 9, "--out", tmp_path / "b")
    assert result.status == 0
    assert "warning: --eta is ignored: click model 'cascade' has no such parameter" in result.err


def test_log_info_shows_the_same_in_words_and_in_json(run: Run, tiny: Path, tmp_path: Path) -> None:
    simulate(run, tiny, tmp_path / "log")
    counts = json.loads(run("log-info", tmp_path / "log", "--json").out)
    text = run("log-info", tmp_path / "log").out
    assert counts["sessions"] == 500
    assert f"{counts['click_rate'][0]:.4f}" in text
    assert f"{counts['share_without_clicks']:.1%}" in text
    assert "█" in text
    assert f"Position bias identifiable: {counts['identifiability']['in_words']}." in text
    assert "documents shown at several positions" in text


def test_log_info_of_something_else_is_one_line(run: Run, tmp_path: Path) -> None:
    result = run("log-info", tmp_path)
    assert result.status == 2
    assert "click log" in result.err


def test_optimality_says_whether_sorting_was_best(run: Run) -> None:
    assert (
        "optimal in all instances" in run("optimality", "--click-model", "dcm", "--documents", 4, "--instances", 20).out
    )
    report = json.loads(run("optimality", "--click-model", "ubm", "--documents", 4, "--instances", 20, "--json").out)
    assert report["holds"] is False
    assert report["largest"]["best_value"] > report["largest"]["sorted_value"]


def test_your_own_log_is_imported_and_described(run: Run, tmp_path: Path) -> None:
    (tmp_path / "features.txt").write_text("0 qid:q 1:0.5 2:1 # a\n0 qid:q 1:0.25 2:2 # b\n")
    rows = ["query_id,session_id,position,doc_id,click", "q,s1,1,a,1", "q,s1,2,b,0", "q,s2,1,b,0", "q,s2,2,a,0"]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    result = run("import-log", tmp_path / "log.csv", "--features", tmp_path / "features.txt", "--out", tmp_path / "log")
    assert result.status == 0, result.err
    counts = json.loads(run("log-info", tmp_path / "log", "--json").out)
    assert (counts["sessions"], counts["distinct_lists"], counts["share_without_clicks"]) == (2, 2, 0.5)
    assert counts["click_rate"] == [0.5, 0.0]


def test_problems_of_your_own_log_are_told_together(run: Run, tmp_path: Path) -> None:
    (tmp_path / "features.txt").write_text("0 qid:q 1:0.5 # a\n0 qid:q 1:0.25 # b\n")
    rows = ["query_id,session_id,position,doc_id,click", "q,s1,1,a,7", "q,s1,3,b,0", "q,s2,1,c,0"]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    result = run("import-log", tmp_path / "log.csv", "--features", tmp_path / "features.txt", "--out", tmp_path / "log")
    assert result.status == 2
    assert len(result.err.splitlines()) >= 3
    assert not (tmp_path / "log").exists()


@pytest.mark.thorough
def test_a_log_has_its_context_and_training_uses_it(run: Run, tiny: Path, tmp_path: Path) -> None:
    simulate(run, tiny, tmp_path / "log", "--context", "device=desktop:0.6,mobile:0.4:2", "--context", "layout=grid:1")
    log = load_click_log(tmp_path / "log")
    assert set(log.context) == {"device", "layout"}
    assert 0.5 < (log.context["device"] == "desktop").mean() < 0.7
    assert read_meta(tmp_path / "log")["source"]["context"][0]["severities"] == [1.0, 2.0]
    trained = run("train", tmp_path / "log", "--out", tmp_path / "model", "--steps", 2)
    assert trained.status == 0, trained.err
    shown = json.loads(run("propensity", tmp_path / "model", "--json").out)
    assert list(shown["by_context"]) == ["device=desktop,layout=grid", "device=mobile,layout=grid"]
    assessed = json.loads(run("assess", tmp_path / "model", tmp_path / "log", "--json").out)
    assert list(assessed["examination_by_context"]) == list(shown["by_context"])
    refused = run("simulate", "--data", tiny, "--click-model", "cascade", "--sessions", 9, "--out", tmp_path / "x",
                  "--context", "device=a:0.5,b:0.5:2")  # fmt: skip
    assert refused.status == 2
    assert "CascadeModel has no severity of position bias" in refused.err
