import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cuolr
from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.examination.curve_intervals import Interval
from cuolr.examination.diagnosis import Diagnosis, amount_text, diagnose
from cuolr.examination.identifiability import Identifiability, ListVariation
from cuolr.examination.swap_advice import Swap, SwapPlan
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.log_folder import save_click_log
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.data.small_data import candidates_of, log_of
from tests.examination.swapping import with_swaps

DATA = generate("tiny", 60, seed=1)
RANKER = fit_ranksvm(DATA, 0.05, 1)
USERS = click_model("pbm")


def one_list(sessions: int = 3_000) -> ClickLog:
    return simulate(DATA, RANKER, USERS, sessions, seed=1)


@pytest.fixture(scope="module")
def unidentified() -> Diagnosis:
    return diagnose(one_list())


def test_one_list_for_each_query_leaves_it_to_the_features_and_swaps_are_advised(unidentified: Diagnosis) -> None:
    assert unidentified.source == "features alone"
    assert unidentified.not_covered == "From features alone, they do not cover the error of confounding."
    assert unidentified.known_depth == 1
    assert unidentified.sessions_needed is None
    assert [plan.depth for plan in unidentified.plans] == [3, 5, 10]
    first, *others = unidentified.what_to_do
    assert first.startswith(
        "To know examination within ±10 % at positions 1 to 10, swap two neighbouring documents in 10 %"
    )
    assert "positions 1 and 2 in " in first
    assert [text[:27] for text in others] == ["For positions 1 to 3 alone:", "For positions 1 to 5 alone:"]
    assert [plan.share for plan in unidentified.choices] == [0.01, 0.02, 0.05, 0.1, 0.2]


@pytest.mark.parametrize(("name", "missing"), [("constant", "the log has no features"), ("age", "no feature differs")])
def test_without_features_that_differ_the_curve_is_that_of_click_rates(name: str, missing: str) -> None:
    log = one_list(1_000)
    nothing = np.zeros((log.candidates.n_documents, 1), np.float32)
    candidates = replace(log.candidates, features=nothing, feature_names=np.array([name]))
    found = diagnose(replace(log, candidates=candidates))
    assert found.source.startswith(f"nothing: {missing}")
    assert found.not_covered == "From click rates alone, they do not cover the error of confounding."
    assert found.features == (name == "age")


def test_lists_that_are_drawn_anew_identify_examination() -> None:
    log = simulate(DATA, StochasticLogger(RANKER, 0.5), USERS, 20_000, seed=1)
    found = diagnose(log)
    assert found.source == "documents shown at several positions"
    assert 1 < found.known_depth < 10
    assert found.plans == ()
    assert found.sessions_needed is not None
    assert found.sessions_needed > 20_000
    assert found.what_to_do[0].startswith(
        "Collect more sessions like these: examination is identified, and known within"
    )
    assert found.share_with_propensity is not None
    assert found.share_with_propensity > 0.9
    assert found.alarm is None


def test_of_lists_that_vary_more_sessions_identify_examination() -> None:
    policy = StochasticLogger(RANKER, 0.5)
    found = diagnose(simulate(DATA, policy, USERS, 2_000, seed=1))
    assert not found.identifiability.identifiable
    advice = found.what_to_do[0]
    assert advice.startswith("Collect more sessions like these: lists vary enough, and examination would be identified")
    assert advice.endswith(" sessions in all, of which there are 2,000.")
    times = found.identifiability.times_as_many
    assert times is not None
    enough = simulate(DATA, policy, USERS, int(2_000 * times), seed=2)
    assert Identifiability.of(ClickCounts.of(enough)).identifiable


def test_of_lists_that_hardly_vary_more_sessions_are_not_advised(unidentified: Diagnosis) -> None:
    link = (0.0, 9.0), (9.0, 0.0)
    thin = replace(unidentified.identifiability, clicks=(90.0, 10.0), links=link, share_at_several_positions=1.0)
    assert thin.times_as_many is None, "100 / 9 > 10 times as many"
    assert replace(thin, links=((0.0, 20.0), (20.0, 0.0))).times_as_many == 100 / 20
    assert replace(thin, links=((0.0, 20.0), (20.0, 0.0)), share_at_several_positions=0.4).times_as_many is None
    assert replace(thin, links=((0.0, 100.0), (100.0, 0.0))).times_as_many is None, "it is identifiable"


def test_swaps_of_neighbours_are_told_as_the_source() -> None:
    swaps = [Swap(k, 0.0, 0.05) for k in range(9)]
    found = diagnose(with_swaps(DATA, RANKER, USERS, 30_000, swaps, seed=1))
    assert found.source.startswith("swaps of neighbouring documents")
    assert found.variation is not None
    assert 0.38 < found.variation.changed < 0.46, "9 · 5 %, but for lists that are too short"
    assert found.variation.swapped == 1


def test_a_curve_that_is_known_needs_nothing(unidentified: Diagnosis) -> None:
    known = tuple(Interval(1.0, 0.99, 1.01) for _ in range(2))
    curves = replace(
        unidentified.curves, from_documents=True, pooled=replace(unidentified.curves.pooled, positions=known)
    )
    identified = replace(unidentified.identifiability, clicks=(500.0, 500.0), links=((0.0, 200.0), (200.0, 0.0)))
    found = replace(unidentified, curves=curves, identifiability=identified, plans=(), choices=())
    assert found.known_depth == 2
    assert found.what_to_do == ["Nothing: examination is identified, and known within ±10 % at all positions."]


@pytest.mark.parametrize(
    ("weight", "told"),
    [
        (Interval(-0.44, -0.5, -0.38), "are clicked less."),
        (Interval(0.02, -0.1, 0.14), "are not clearly clicked more."),
        (Interval(0.3, 0.2, 0.4), None),
        (None, None),
    ],
)
def test_the_logging_policy_weight_is_an_alarm(
    unidentified: Diagnosis, weight: Interval | None, told: str | None
) -> None:
    found = replace(unidentified, curves=replace(unidentified.curves, logging_policy_weight=weight))
    if told is None or weight is None:
        assert found.alarm is None
        assert found.problems == []
    else:
        assert found.alarm is not None
        assert told in found.alarm
        assert found.alarm.endswith("Examination from features alone is not to be trusted")
        assert f"{weight.value:.2f} ({weight.low:.2f} to {weight.high:.2f})" in found.alarm
        assert found.problems == [f"{found.alarm}."]
    by_documents = replace(found, curves=replace(found.curves, from_documents=True))
    assert by_documents.alarm is None, "the weight is not used"


@pytest.mark.parametrize("nothing", [(30.0,), (0.0, 0.0)])
def test_without_clicks_or_with_one_position_there_is_no_alarm(
    unidentified: Diagnosis, nothing: tuple[float, ...]
) -> None:
    curves = replace(unidentified.curves, logging_policy_weight=Interval(0.0, -2.0, 2.0))
    links = tuple((0.0,) * len(nothing) for _ in nothing)
    assert replace(unidentified, curves=curves, identifiability=Identifiability((9.0, 1.0), ((0.0, 0.0),) * 2, 0)).alarm
    assert replace(unidentified, curves=curves, identifiability=Identifiability(nothing, links, 0)).problems == []


def test_traffic_gives_days() -> None:
    log = one_list(2_000)
    day = np.datetime64("2026-11-01") + np.arange(2_000) // 1_000
    found = diagnose(replace(log, timestamp=day.astype("datetime64[us]")))
    plan = found.choices[0]
    assert plan.days == pytest.approx(plan.sessions / 1_000)
    assert "sessions at the traffic of the log)" in found.what_to_do[0]


def test_how_long_a_plan_takes_is_told_in_words() -> None:
    plan = SwapPlan(3, 0.1, 129_975.0, None, ())
    assert amount_text(plan) == "130,000 sessions"
    assert amount_text(replace(plan, days=12.3)) == "13 days (130,000 sessions at the traffic of the log)"
    assert amount_text(replace(plan, days=0.2)) == "1 day (130,000 sessions at the traffic of the log)"


def test_json_can_hold_everything(unidentified: Diagnosis) -> None:
    values = json.loads(json.dumps(unidentified.as_dict(), allow_nan=False))
    assert values["sessions"] == 3_000
    assert values["identifiability"]["verdict"] == "no"
    assert values["identifiability"]["source"] == "features alone"
    assert values["examination"]["all"][0] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert values["what_to_do"]["plans"][0]["swaps"][0]["positions"] == [1, 2]
    assert values["what_to_do"]["sentences"] == unidentified.what_to_do


def test_a_folder_says_what_its_log_says(tmp_path: Path, unidentified: Diagnosis) -> None:
    save_click_log(one_list(), tmp_path / "log")
    assert cuolr.diagnose(tmp_path / "log").as_dict() == unidentified.as_dict()


def test_an_aggregated_log_is_diagnosed_too(unidentified: Diagnosis) -> None:
    found = diagnose(aggregate(one_list()))
    assert found.sessions is None
    assert found.identifiability.verdict == "no"
    assert len(found.curves.pooled.positions) == len(unidentified.curves.pooled.positions)


def test_one_position_has_no_position_bias() -> None:
    found = diagnose(log_of(candidates_of(2), [0, 0], [[0], [1]], [[1], [0]]))
    assert found.source == "nothing, there is one position"
    assert found.what_to_do == ["Nothing: with one position there is no position bias."]


def test_a_log_without_clicks_cannot_be_planned_for() -> None:
    found = diagnose(log_of(candidates_of(2), [0, 0], [[0, 1], [1, 0]], [[0, 0], [0, 0]]))
    assert found.what_to_do == ["Log clicks: too few are in the log to plan swaps of documents."]
    json.dumps(found.as_dict(), allow_nan=False)


@pytest.mark.filterwarnings("error")
def test_a_log_without_sessions_is_refused() -> None:
    with pytest.raises(InputError, match="expected a log that shows documents"):
        diagnose(one_list(10).select(np.array([], np.int64)))


def test_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="log: expected"):
        diagnose(DATA)  # type: ignore[arg-type]


def variation(ranking: list[list[int]], query: list[int] | None = None) -> ListVariation:
    log = log_of(candidates_of(4, 4), query or [0] * len(ranking), ranking, np.zeros((len(ranking), 4), int).tolist())
    return ListVariation.of(aggregate(log))


def test_one_list_for_each_query_does_not_vary() -> None:
    found = variation([[0, 1, 2, 3], [0, 1, 2, 3], [3, 2, 1, 0]], [0, 0, 1])
    assert (found.changed, found.swapped) == (0, 0)
    assert not found.by_swaps


@pytest.mark.parametrize(
    ("other", "swapped"),
    [
        ([1, 0, 2, 3], 1),  # neighbours
        ([0, 1, 3, 2], 1),
        ([2, 1, 0, 3], 0),  # not neighbours
        ([1, 0, 3, 2], 0),  # two swaps
        ([0, 1, 2, -1], 0),  # a shorter list
        ([1, 2, 0, 3], 0),
    ],
)
def test_swaps_of_neighbours_are_recognised(other: list[int], swapped: int) -> None:
    found = variation([[0, 1, 2, 3]] * 3 + [other])
    assert (found.changed, found.swapped) == (1 / 4, swapped)
    assert found.by_swaps == bool(swapped)


def test_the_most_frequent_list_is_the_usual_one() -> None:
    assert variation([[1, 0, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]) == ListVariation(1 / 3, 1)
