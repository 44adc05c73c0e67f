import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.clicks.pbm import EYE_TRACKING
from cuolr.errors import InputError
from cuolr.evaluation.significance import stars
from cuolr.experiments.human_labels import read_labels
from cuolr.experiments.real import RealRequest, _check_folder, read_summary, run_real
from cuolr.experiments.real import real_cells as cells_of
from cuolr.experiments.real_cells import corrected_rates
from cuolr.experiments.real_data import RealData, split_log
from cuolr.experiments.real_summary import RealSummary
from cuolr.experiments.report.text_tables import real_tables
from cuolr.experiments.spec import Cell
from cuolr.experiments.spec_file import parse_experiment, read_experiment
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.importing.formats.baidu_ultr_uva import CLASSICAL
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.seen_documents import CONSTANT_FEATURE
from cuolr.policies.policy import RankingPolicy
from cuolr.training.fit import FitRequest, fit
from cuolr.training.log_form import TrainingLog
from cuolr.types import RankingDataset
from tests.data.small_data import candidates_of, log_of
from tests.experiments.small import real_log
from tests.logs.importing.formats.test_web_search import write_part

METHODS = parse_experiment(
    {
        "title": "Two methods",
        "training": {"steps": 20, "batch_size": 32, "validate_every": 10},
        "seeds": 1,
        "grid": [{"method": ["LOGGING", "LightGBM", "ORACLE"]}],
        "method": {
            "LOGGING": {"learner": "logging"},
            "ORACLE": {"learner": "oracle"},
            "LightGBM": {"learner": "lightgbm"},
        },
    }
)


@pytest.fixture(scope="module")
def made_up() -> tuple[ClickLog, RankingDataset, RankingPolicy]:
    return real_log(queries=60, sessions=20_000)


def run_methods(data: RealData, out: Path) -> tuple[RealSummary, list[str]]:
    said: list[str] = []
    done: list[int] = []
    request = RealRequest(METHODS, data, out)
    summary, failed = run_real(request, said.append, lambda name, total: done.append)
    assert failed == {}
    assert done == [1] * len(cells_of(request))
    return summary, said


def without_features(log: ClickLog) -> ClickLog:
    candidates = log.candidates
    constant = np.zeros((candidates.n_documents, 1), np.float32)
    return replace(log, candidates=replace(candidates, features=constant, feature_names=np.array([CONSTANT_FEATURE])))


def test_random_lists_are_set_apart_and_their_mark_is_hidden(made_up: tuple[ClickLog, object, object]) -> None:
    log, _, _ = made_up
    data = split_log(log, "made up")
    assert data.judge is not None
    assert (len(data.train), len(data.judge)) == (20_000, 20_000)
    assert data.train.randomised is None
    assert log.randomised is not None
    np.testing.assert_array_equal(data.judge.ranking, log.ranking[log.randomised])


def test_the_production_order_is_found_in_the_training_log(
    made_up: tuple[ClickLog, RankingDataset, RankingPolicy],
) -> None:
    log, shown, production = made_up
    data = split_log(log, "made up")
    assert data.judge is not None
    in_order = np.take_along_axis(data.judge.ranking, data.logging_order(), axis=1)
    expected = production.rank(shown.candidates, log.k)[data.judge.query]
    np.testing.assert_array_equal(in_order, np.where(in_order >= 0, expected, -1))


def test_naive_and_the_logging_policy_run_beside_every_method_and_rankers_that_need_labels_do_not(
    made_up: tuple[ClickLog, object, object], tmp_path: Path
) -> None:
    request = RealRequest(METHODS, split_log(made_up[0], "made up"), tmp_path, "method=LightGBM")
    assert [cell.method for cell in cells_of(request)] == ["LightGBM", "LOGGING", "naive"]
    everything = replace(request, only="")
    assert [cell.method for cell in cells_of(everything)] == ["LOGGING", "LightGBM", "naive"]


@pytest.mark.thorough
def test_the_outcome_agrees_with_the_truth_of_the_simulation(
    made_up: tuple[ClickLog, RankingDataset, RankingPolicy], tmp_path: Path
) -> None:
    log, shown, production = made_up
    data = split_log(log, "made up", shown)
    summary, said = run_methods(data, tmp_path / "out")
    rows = {row.method: row for row in summary.methods}
    assert set(rows) == {"LOGGING", "LightGBM", "naive"}

    def true_clicks(policy: RankingPolicy) -> float:
        assert data.judge is not None
        ranking = policy.rank(shown.candidates, log.k)
        documents = np.where(ranking >= 0, shown.candidates.offsets[:-1, None] + ranking, 0)
        relevance = relevance_of(shown.relevance[documents], shown.max_grade)
        return float(click_model("pbm").click_probability(relevance, ranking >= 0).sum(axis=1)[data.judge.query].mean())

    of_production = true_clicks(production)
    for method in ("LightGBM", "naive"):
        config = METHODS.config_of(Cell(method))
        assert config is not None
        trained = fit(FitRequest(TrainingLog.of(data.train), config)).best
        assert trained is not None
        outcome = rows[method].outcome
        assert outcome is not None
        assert outcome[1] is not None
        assert outcome[2] is not None
        assert outcome[1] < true_clicks(trained.policy) / of_production - 1 < outcome[2]
        assert rows[method].predicted is not None
        assert 0 < rows[method].values["ndcg@10"][0] <= 1
    assert rows["LOGGING"].outcome == (0.0, 0.0, 0.0)
    assert "clicks" in rows["LightGBM"].against_naive
    # Examination: estimated from clicks it is closer to that of the random lists than without an estimate.
    truth = np.array(EYE_TRACKING[: log.k]) / EYE_TRACKING[0]
    of_lists = [value for value in summary.random_examination[0] if value is not None]
    np.testing.assert_allclose(of_lists, truth, atol=0.06)
    errors = {row.estimate: row.error[0] for row in summary.examination}
    for row in summary.examination:
        assert row.error[1] is not None
        assert row.error[2] is not None
        assert 0 <= row.error[1] <= row.error[0] < row.error[2]
    assert errors["from clicks"] < errors["click rates"] < errors["none: all positions alike (naive)"]
    # What is finished is not run again, and gives the same summary.
    again, said_again = run_methods(data, tmp_path / "out")
    assert (len(said), said_again) == (3, [])
    assert json.loads(json.dumps(again.as_dict())) == {
        name: value for name, value in read_summary(tmp_path / "out").items() if name in again.as_dict()
    }


def test_a_corrected_click_rate_is_clicks_per_examination_with_one_of_the_querys_mean() -> None:
    """Two sessions show d0 above d1 and click d0; position 2 is examined half as often; d2 is never shown."""
    log = log_of(candidates_of(3), [0, 0], [[0, 1], [0, 1]], [[1, 0], [1, 0]])
    counts = ClickCounts.of(log)
    rates = corrected_rates(counts, counts.by_position(counts.impressions) * np.array([1.0, 0.5]))
    mean = 2 / (2 + 1)
    assert rates.tolist() == pytest.approx([(2 + mean) / (2 + 1), (0 + mean) / (1 + 1), mean])


def test_without_features_examination_and_click_rates_are_judged(
    made_up: tuple[ClickLog, RankingDataset, RankingPolicy], tmp_path: Path
) -> None:
    log, shown, _ = made_up
    # Some random lists are not marked: the training log shows documents at several positions.
    bare = replace(without_features(log), randomised=np.arange(len(log)) >= 21_000)
    labels = replace(shown, candidates=bare.candidates)
    summary, said = run_methods(split_log(bare, "bare", labels), tmp_path / "out")
    assert said == []
    rows = {row.method: row for row in summary.methods}
    assert set(rows) == {"naive", "examination-corrected click rate"}
    naive, corrected = (rows[name].values["ndcg@10"][0] for name in ("naive", "examination-corrected click rate"))
    difference, p = rows["examination-corrected click rate"].against_naive["ndcg@10"]
    assert difference == pytest.approx(corrected - naive)
    assert naive < corrected == 1
    assert 0 < p <= 1
    assert [row.estimate for row in summary.examination] == [
        "none: all positions alike (naive)",
        "click rates",
        "from clicks",
    ]


def test_labels_alone_judge_a_log_without_random_lists(made_up: tuple[ClickLog, RankingDataset, object]) -> None:
    log, shown, _ = made_up
    data = split_log(replace(log, randomised=None), "made up", shown)
    assert (data.judge, len(data.train)) == (None, 40_000)


def test_a_log_without_a_judge_is_refused(made_up: tuple[ClickLog, object, object]) -> None:
    log, _, _ = made_up
    with pytest.raises(InputError, match=r"in random order .* or labels, to judge methods by; found neither"):
        split_log(replace(log, randomised=None), "made up")
    with pytest.raises(InputError, match="all lists were in random order"):
        split_log(replace(log, randomised=np.ones(len(log), np.bool_)), "made up")


def test_the_built_in_experiment_has_naive_and_methods_that_run_without_other_information() -> None:
    experiment = read_experiment("real")
    assert "naive" in experiment.methods
    assert "cm-ipw" not in {experiment.method_named(name).learner for name in experiment.methods}  # needs continuation


CANDIDATES = candidates_of(3, 2)  # d0, d1, d2 of q0; d3, d4 of q1


def assert_labels(file: Path) -> None:
    """Grades of three documents, two of them of the first query."""
    labels = read_labels(file, CANDIDATES)
    assert labels.candidates.query_ids.tolist() == ["q0", "q1"]
    assert labels.candidates.document_ids is not None
    assert labels.candidates.document_ids.tolist() == ["d0", "d2", "d4"]
    assert labels.relevance.tolist() == [1, 3, 0]
    np.testing.assert_array_equal(labels.candidates.features, CANDIDATES.features[[0, 2, 4]])
    assert labels.max_grade == 4


def test_qrels(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 d4 0\nq0 0 d2 3\nq0 0 d0 1\nq0 0 unknown 2\n\n")
    assert_labels(tmp_path / "qrels.txt")


def test_the_fields_of_tiangong_st_separated_by_spaces_and_tabs(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("0\t17\tq0 d2\t3\n0\t17\tq0 d0\t1\n1 18 q1\td4 0\n1 18 q1\td4 0\n")
    assert_labels(tmp_path / "labels.txt")


def test_a_table(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("query_id,doc_id,label\nq0,d2,3\nq0,d0,1\nq1,d4,0\n")
    assert_labels(tmp_path / "labels.csv")


@pytest.mark.thorough
def test_expert_labels_of_baidu_have_the_features_of_the_log(tmp_path: Path) -> None:
    log, _ = import_log_with_report(write_part(tmp_path / "part-0_split-0.feather"), format="baidu-ultr-uva")
    labels = read_labels(write_part(tmp_path / "validation.feather", label=True), log.candidates)
    assert labels.candidates.n_features == log.candidates.n_features
    assert labels.candidates.feature_names is not None
    assert labels.candidates.feature_names.tolist()[:12] == list(CLASSICAL)
    # The same documents: in this look-alike, those of the log.
    np.testing.assert_array_equal(labels.candidates.features, log.candidates.features)
    assert labels.candidates.document_ids is not None
    assert labels.relevance.tolist() == [int(name[1:]) % 5 for name in labels.candidates.document_ids]


@pytest.mark.thorough
def test_labels_without_the_features_of_the_log_are_refused(tmp_path: Path) -> None:
    log, _ = import_log_with_report(write_part(tmp_path / "part-0_split-0.feather"), format="baidu-ultr-uva")
    labels = write_part(tmp_path / "validation.feather", embedding=False, label=True)
    with pytest.raises(InputError, match="columns missing: bert_0"):
        read_labels(labels, log.candidates)


def test_labels_need_a_log_with_ids_of_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("q0 0 d0 1\n")
    with pytest.raises(InputError, match="the documents of the log have no ids to find their labels by"):
        read_labels(tmp_path / "a.txt", replace(candidates_of(3), document_ids=None))


@pytest.mark.parametrize(
    ("existing", "message"),
    [
        ("out", "out: expected a folder for the results, found a file"),
        ("out/thesis.txt", "out: not a folder of results"),
        ("out/cells/experiment.json", ""),  # of an earlier run
        ("out/experiment.json", "out: not a folder of results"),
    ],
)
def test_results_are_written_to_a_folder_of_their_own(tmp_path: Path, existing: str, message: str) -> None:
    (tmp_path / existing).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / existing).write_text("{}")
    with pytest.raises(InputError, match=message) if message else nullcontext():
        _check_folder(tmp_path / "out")


def test_results_of_simulated_logs_are_not_mixed_with_those_of_a_real_one(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(InputError, match="has the results of an experiment on simulated logs"):
        _check_folder(tmp_path)


def test_what_is_not_known_of_a_method_is_a_dash() -> None:
    naive = {
        "method": "naive",
        "values": {"clicks": [0.5, 0.4, 0.6], "ndcg@10": [0.25, None, None]},
        "against_naive": {},
        "outcome": [0.1, 0.05, 0.15],
        "outcome_on_new": [0.2, None, None],
        "predicted": None,
        "recommendation": "ship",
    }
    alone = {**naive, "method": "LOGGING", "values": {"clicks": [0.25, 0.2, 0.3]}, "outcome": None}
    alone |= {"outcome_on_new": None, "recommendation": None, "against_naive": {"clicks": [-0.25, 0.001]}}
    content = {
        "data": {"name": "LOG", "random_sessions": 1_000, "train_sessions": 2_000},
        "examination": [{"estimate": "naive", "error": [0.125, 0.1, 0.15]}],
        "methods": [naive, alone],
    }
    (title, _, examination), (_, _, rows) = real_tables(content)
    assert title == "LOG: examination, against that of 1,000 lists in random order"
    assert examination == [["naive", "0.1250", "0.1000 to 0.1500"]]
    outcomes = ["+10.0%", "+5.0% to +15.0%", "+20.0%", "unknown", "–", "–", "ship"]
    assert sorted(rows[0][1:3]) == ["0.2500", "0.5000 ± 0.1000"]
    assert (rows[0][0], rows[0][3:]) == ("naive", outcomes)
    assert sorted(rows[1][1:3]) == [f"0.2500 ± 0.0500{stars(0.001)}", "–"]
    assert (rows[1][0], rows[1][3:]) == ("LOGGING", ["–"] * 7)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "q0 d0\n", "a.txt:1: expected 'query 0 document grade'"),
        ("a.txt", "\n", "found an empty file"),
        ("a.txt", "q0 0 d0 good\n", "expected whole numbers from 0 up as labels, found 1 others"),
        ("a.txt", "q0 0 d0 -1\n", "expected whole numbers"),
        ("a.txt", "x 0 d0 1\n", "none of its 1 labelled documents is in the log"),
        ("a.csv", "query_id,doc_id,grade\nq0,d0,1\n", "columns missing: label"),
    ],
)
def test_bad_labels_are_one_line(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_labels(tmp_path / name, CANDIDATES)
    assert len(error.value.problems) == 1
