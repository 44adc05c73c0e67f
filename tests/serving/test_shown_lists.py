"""Randomised and interleaved lists: their probabilities, by counting all cases, and their limit."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.off_policy.interleaving import team_draft
from cuolr.off_policy.users_of_log import UsersOfLog
from cuolr.policies.browsing_users import LastClickUsers
from cuolr.policies.plackett_luce import plackett_luce_probability
from cuolr.policies.planned_policy import PlannedPolicy
from cuolr.policies.policy import ScoringPolicy
from cuolr.serving.batch_ranker import RankedRequest
from cuolr.serving.journal import Journal
from cuolr.serving.loss_limit import LossLimit, expected_losses
from cuolr.serving.randomisations.sampled_rankings import SampledRankings
from cuolr.serving.randomisations.swap_neighbours import SwapNeighbours, swap_propensity
from cuolr.serving.served_models import ServedModel
from cuolr.serving.service import ListSettings
from cuolr.serving.shown_lists import interleave, interleaving_propensity, parse_randomisation, parse_share
from tests.serving.small_service import PRICE, STOCK, documents, ids, linear_model, serving
from tests.small_log import small_log


@pytest.mark.parametrize("length", [2, 3, 5])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_probabilities_of_a_swapped_list_multiply_to_that_of_the_list(length: int, share: float) -> None:
    assert swap_propensity(share, length, None).prod() == pytest.approx(1 - share)
    for pair in range(length - 1):
        assert swap_propensity(share, length, pair).prod() == pytest.approx(share / (length - 1))


def test_lists_are_swapped_as_often_as_asked() -> None:
    ranked = RankedRequest(np.array([7, 8, 9]), None)
    rng = np.random.default_rng(1)
    drawn = [SwapNeighbours(0.4).draw(ranked, 3, rng) for _ in range(4_000)]
    times = {order: sum(tuple(d.order) == order for d in drawn) / 4_000 for order in {tuple(d.order) for d in drawn}}
    assert set(times) == {(7, 8, 9), (8, 7, 9), (7, 9, 8)}
    # 4 standard errors of a share of 0.2 in 4,000
    assert times[(8, 7, 9)] == pytest.approx(0.2, abs=4 * np.sqrt(0.2 * 0.8 / 4_000))
    assert times[(7, 9, 8)] == pytest.approx(0.2, abs=4 * np.sqrt(0.2 * 0.8 / 4_000))
    for one in drawn[:50]:
        expected = {(7, 8, 9): 0.6, (8, 7, 9): 0.2, (7, 9, 8): 0.2}[tuple(one.order)]
        assert one.propensity.prod() == pytest.approx(expected)


def test_a_list_of_one_document_is_not_swapped() -> None:
    only = SwapNeighbours(0.5).draw(RankedRequest(np.array([3]), None), 1, np.random.default_rng(0))
    assert (only.order.tolist(), only.propensity.tolist()) == ([3], [1.0])


def test_sampled_lists_have_the_probabilities_of_plackett_luce() -> None:
    scores = np.array([1.0, 0.0, -1.0, 2.0], np.float32)
    drawn = SampledRankings(0.5).draw(RankedRequest(np.array([3, 0]), scores), 2, np.random.default_rng(4))
    assert len(drawn.order) == 2
    where = np.ones((1, 4), np.bool_)
    expected = plackett_luce_probability(scores[None] / 0.5, where, drawn.order[None])[0]
    np.testing.assert_allclose(drawn.propensity, expected)


@pytest.mark.parametrize(
    ("a", "b"),
    [([0, 1, 2, 3], [3, 2, 1, 0]), ([0, 1, 2, 3], [0, 1, 2, 3]), ([0, 1, 2, 3], [0, 4, 1, 5]), ([0, 1], [1, 2])],
)
def test_the_probability_of_an_interleaved_list_is_its_share_of_all_coins(a: list[int], b: list[int]) -> None:
    first, second, length = np.array(a), np.array(b), len(a)
    times: dict[tuple[int, ...], float] = {}
    for coins in itertools.product([False, True], repeat=length):
        order = tuple(team_draft(first[None], second[None], np.array([coins]))[0][0].tolist())
        times[order] = times.get(order, 0) + 0.5**length
    for order, share in times.items():
        assert interleaving_propensity(first, second, np.array(order)).prod() == pytest.approx(share)


def test_both_models_contribute_to_an_interleaved_list() -> None:
    a, b = RankedRequest(np.array([0, 1, 2, 3]), None), RankedRequest(np.array([3, 2, 1, 0]), None)
    rng = np.random.default_rng(0)
    for _ in range(20):
        shown = interleave(a, b, ("old", "new"), rng)
        assert sorted(shown.order.tolist()) == [0, 1, 2, 3]
        assert sorted(shown.team[:2]) == sorted(shown.team[2:]) == ["new", "old"]


def test_documents_must_have_the_features_of_both_models(tmp_path: Path) -> None:
    one, two = linear_model(tmp_path / "one", [1.0], PRICE), linear_model(tmp_path / "two", [1.0, 1.0], PRICE, STOCK)
    with serving(one, two, lists=ListSettings(interleave_with="two")) as client:
        answer = client.post("/rank", json={"documents": documents(1, 2)})
        assert (answer.status_code, answer.json()["error"]["type"]) == (422, "bad_features")
        assert client.post("/rank", json={"documents": documents(1, 2), "model": "one"}).status_code == 200


def test_randomised_lists_are_logged_with_their_propensities(tmp_path: Path) -> None:
    settings = ListSettings(k=3, randomisation=SwapNeighbours(0.5), seed=2)
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    with serving(model, journal=Journal(tmp_path / "LOG"), lists=settings) as client:
        answers = [client.post("/rank", json={"documents": documents(4, 3, 2, 1)}).json() for _ in range(30)]
    shown = {answer["request_id"]: [d["propensity"] for d in answer["documents"]] for answer in answers}
    assert {"".join(ids(answer)) for answer in answers} == {"abc", "bac", "acb"}
    log, _ = import_log_with_report(tmp_path / "LOG", format="cuolr-serve")
    assert log.session_id is not None
    assert log.logging_propensity is not None
    for name, propensity in zip(log.session_id, log.logging_propensity, strict=True):
        np.testing.assert_allclose(propensity, shown[str(name)], rtol=1e-6)
    again = []
    with serving(model, lists=settings) as client:
        for _ in range(30):
            again.append(ids(client.post("/rank", json={"documents": documents(4, 3, 2, 1)}).json()))
    assert again == [ids(answer) for answer in answers]  # the same seed


@pytest.mark.parametrize(
    "wrong",
    [
        "swap",
        "swap-neighbours",
        "swap-neighbours:",
        "swap-neighbours:60%",
        "swap-neighbours:nan",
        "plackett-luce:0",
        "plackett-luce:inf",
        "plackett-luce:x",
        "shuffle:1",
        ":",
    ],
)
def test_a_bad_randomisation_is_refused(wrong: str) -> None:
    with pytest.raises(InputError):
        parse_randomisation(wrong)


def test_shares_are_read() -> None:
    assert (parse_share("5%"), parse_share("0.05"), parse_share("100%")) == (0.05, 0.05, 1.0)


def test_without_a_log_only_the_worst_case_counts(tmp_path: Path) -> None:
    model = ServedModel.load(linear_model(tmp_path / "m", [1.0], PRICE), "m")
    LossLimit(SwapNeighbours(0.05), 10, 0.05).check(model)
    with pytest.raises(InputError, match=r"may cost 10\.0% of the clicks of 'm' in the worst case"):
        LossLimit(SwapNeighbours(0.1), 10, 0.05).check(model)
    with pytest.raises(InputError, match=r"may cost 100.0% .* estimate it from a log with --safety-log"):
        LossLimit(SampledRankings(0.001), 10, 0.05).check(model)


def test_lists_are_sampled_by_the_scores_of_a_model_that_has_them(tmp_path: Path) -> None:
    scored = ServedModel.load(linear_model(tmp_path / "m", [1.0], PRICE), "m")
    assert isinstance(scored.policy, ScoringPolicy)
    planned = PlannedPolicy(scored.policy, LastClickUsers(np.ones((3, 4))), 0.0, 1.0, 0.0)
    with pytest.raises(InputError, match="expected a model that scores documents, but 'm' gives lists only"):
        LossLimit(SampledRankings(0.1), 10, 1.0).check(replace(scored, policy=planned))
    assert "at most 5.0%" in LossLimit(SwapNeighbours(0.05), 10, 0.05).check(replace(scored, policy=planned))


@pytest.fixture(scope="module")
def users() -> UsersOfLog:
    return UsersOfLog.fit(small_log(rows=400, queries=4))


@pytest.mark.thorough
def test_the_loss_by_users_of_a_log_grows_with_the_randomisation(users: UsersOfLog, tmp_path: Path) -> None:
    # Clicks of this log go by the first feature, as the model does.
    model = ServedModel.load(linear_model(tmp_path / "m", [1.0, 0.0, 0.0, 0.0]), "m")

    def loss(temperature: float) -> float:
        found = expected_losses(LossLimit(SampledRankings(temperature), 5, 0.05, users), model.policy)
        assert set(found) == {fitted.name for fitted in users.fitted}
        return max(found.values())

    assert abs(loss(1e-4)) < 1e-9  # the model's own lists
    assert loss(10.0) > 0.01


@pytest.mark.thorough
def test_a_loss_above_the_limit_by_users_of_a_log_is_refused_and_a_log_without_clicks_too(
    users: UsersOfLog, tmp_path: Path
) -> None:
    model = ServedModel.load(linear_model(tmp_path / "m", [1.0, 0.0, 0.0, 0.0]), "m")
    with pytest.raises(InputError, match=r"by the users of the log \(\w+\), .* randomise less, or raise the limit"):
        LossLimit(SampledRankings(10.0), 5, 0.001, users).check(model)
    with pytest.raises(InputError, match="--safety-log: expected a log with clicks"):
        LossLimit(SampledRankings(10.0), 5, 0.001, replace(users, fitted=())).check(model)


@pytest.mark.thorough
def test_a_swap_costs_what_the_users_lose_on_average(users: UsersOfLog, tmp_path: Path) -> None:
    """By hand: the clicks of each list with each swap, each as likely, against those of the list itself."""
    model = ServedModel.load(linear_model(tmp_path / "m", [1.0, 0.0, 0.0, 0.0]), "m")
    share, k = 0.5, 3
    limit = LossLimit(SwapNeighbours(share), k, 0.05, users)
    candidates = users.log.candidates
    own = model.policy.rank(candidates, k) + candidates.offsets[:-1, None]
    sessions = np.bincount(users.log.query)
    for fitted in users.fitted:
        response = fitted.response()
        before = sessions @ response.clicks(own).sum(axis=1)
        swaps = [own[:, order] for order in ([1, 0, 2], [0, 2, 1])]
        swapped = np.mean([sessions @ response.clicks(lists).sum(axis=1) for lists in swaps])
        expected = share * (1 - swapped / before)
        assert expected_losses(limit, model.policy)[fitted.name] == pytest.approx(expected, abs=5e-3)
