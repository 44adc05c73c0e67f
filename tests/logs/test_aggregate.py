from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.logs import aggregate as module
from cuolr.logs.aggregate import aggregate, aggregate_folder
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import save_click_log
from tests.data.small_data import assert_same_log, candidates_of, full_log, log_of, random_log


def history_weights(clicks: npt.NDArray[Any]) -> npt.NDArray[np.floating[Any]]:
    """Weights that depend on a session's own clicks: 2 to the power of the number of clicks above."""
    above = np.cumsum(clicks, axis=1) - clicks
    weights: npt.NDArray[np.float64] = np.exp2(above, dtype=np.float64)
    return weights


def test_sessions_of_the_same_list_become_one_row() -> None:
    log = log_of(
        candidates_of(3, 2),
        query=[1, 0, 0, 0, 0],
        ranking=[[1, -1], [2, 0], [0, 2], [2, 0], [2, 0]],
        clicks=[[1, 0], [0, 1], [1, 1], [1, 0], [0, 1]],
    )
    aggregated = aggregate(log)
    assert aggregated.aggregated
    assert aggregated.query.tolist() == [0, 0, 1]
    assert aggregated.ranking.tolist() == [[0, 2], [2, 0], [1, -1]]
    assert aggregated.count.tolist() == [1, 3, 1]
    assert aggregated.clicks.tolist() == [[1, 1], [1 / 3, 2 / 3], [1, 0]]
    assert aggregated.candidates is log.candidates


def test_weighted_clicks_are_weighted_before_the_mean_is_taken() -> None:
    log = log_of(candidates_of(3), [0, 0], [[2, 0, 1]] * 2, [[1, 1, 0], [0, 1, 1]])
    means = [1 / 2, (2 + 1) / 2, 2 / 2]
    assert aggregate(log, history_weights).clicks.tolist() == [means]


def test_examination_is_averaged_and_timestamps_go() -> None:
    log = log_of(candidates_of(2), [0] * 4, [[1, 0]] * 4, [[0, 0]] * 4)
    looked = np.array([[1, 0], [1, 1], [1, 0], [1, 0]], np.uint8)
    aggregated = aggregate(replace(log, examination=looked, timestamp=np.arange(4)))
    assert aggregated.examination is not None
    assert aggregated.examination.tolist() == [[1, 1 / 4]]
    assert aggregated.timestamp is None


def test_sessions_keep_their_logging_propensity() -> None:
    log = log_of(candidates_of(2), [0] * 3, [[1, 0]] * 3, [[1, 0], [0, 0], [0, 0]])
    propensity = np.array([[0.25, 1], [0.5, 1], [0.25, 1]], np.float32)
    aggregated = aggregate(replace(log, logging_propensity=propensity))
    assert aggregated.logging_propensity is not None
    assert aggregated.logging_propensity.tolist() == [[0.25, 1], [0.5, 1]]
    assert aggregated.count.tolist() == [2, 1]
    assert aggregated.clicks.tolist() == [[1 / 2, 0], [0, 0]]


def test_rewards_are_averaged_as_clicks_are() -> None:
    log = log_of(candidates_of(2), [0] * 4, [[1, 0]] * 4, [[1, 0]] * 4)
    reward = np.array([[5, 0], [0, 1], [0, 1], [1, 1]], np.float32)
    aggregated = aggregate(replace(log, reward=reward))
    assert aggregated.reward is not None
    assert aggregated.reward.tolist() == [[6 / 4, 3 / 4]]
    again = aggregate(aggregated).reward
    assert again is not None
    assert again.tolist() == [[6 / 4, 3 / 4]]


def test_lists_at_different_positions_of_the_page_are_not_merged() -> None:
    log = log_of(candidates_of(2), [0] * 3, [[1, 0]] * 3, [[1, 0], [0, 0], [0, 0]])
    aggregated = aggregate(replace(log, page_position=np.array([[0, 1], [0, 3], [0, 1]], np.int32)))
    assert aggregated.page_position is not None
    assert aggregated.page_position.tolist() == [[0, 1], [0, 3]]
    assert aggregated.count.tolist() == [2, 1]
    assert aggregated.clicks.tolist() == [[1 / 2, 0], [0, 0]]


def test_lists_in_different_contexts_are_not_merged() -> None:
    log = log_of(candidates_of(2), [0] * 4, [[1, 0]] * 4, [[1, 0], [0, 0], [0, 0], [0, 1]])
    context = {"device": np.array(["phone", "desktop", "phone", "phone"]), "columns": np.array([1, 1, 1, 2])}
    aggregated = aggregate(replace(log, context=context))
    assert aggregated.context["device"].tolist() == ["desktop", "phone", "phone"]
    assert aggregated.context["columns"].tolist() == [1, 1, 2]
    assert aggregated.count.tolist() == [1, 2, 1]
    assert aggregated.clicks.tolist() == [[0, 0], [1 / 2, 0], [0, 1]]


def test_the_order_of_the_sessions_does_not_matter() -> None:
    log = random_log(candidates_of(5, 2, 9), sessions=500, k=4)
    shuffled = log.select(np.random.default_rng(0).permutation(500))
    assert_same_log(aggregate(shuffled), aggregate(log))


def test_aggregating_again_changes_nothing() -> None:
    once = aggregate(full_log())
    twice = aggregate(once)
    np.testing.assert_array_equal(twice.count, once.count)
    np.testing.assert_array_equal(twice.ranking, once.ranking)
    np.testing.assert_allclose(twice.clicks, once.clicks, rtol=1e-15)


def test_parts_that_were_aggregated_before_add_up() -> None:
    log = random_log(candidates_of(3), sessions=90, k=2)
    parts = [aggregate(log.select(slice(0, 30))), aggregate(log.select(slice(30, 90)))]
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    joined = aggregate(ClickLog.from_columns(log.candidates, columns, aggregated=True))
    whole = aggregate(log)
    np.testing.assert_array_equal(joined.count, whole.count)
    np.testing.assert_allclose(joined.clicks, whole.clicks, rtol=1e-15)


@given(rows=st.integers(1, 60), weighted=st.booleans())
def test_a_log_that_is_aggregated_in_parts_is_the_same(rows: int, weighted: bool) -> None:
    log = random_log(candidates_of(5, 2, 9), sessions=50, k=4, lists_per_query=5)
    weights = history_weights if weighted else None
    whole = aggregate(log, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS_AT_A_TIME", rows)
        parts = aggregate(log, weights)
    assert_same_log(parts, whole)


def test_a_saved_log_is_aggregated_alike(tmp_path: Path) -> None:
    log = full_log()
    save_click_log(log, tmp_path / "log")
    assert_same_log(aggregate_folder(tmp_path / "log"), aggregate(log))


def test_an_empty_log_stays_empty() -> None:
    assert len(aggregate(full_log().select(slice(0, 0)))) == 0


def test_weights_of_sessions_that_are_known_no_more_are_refused() -> None:
    with pytest.raises(
        InputError, match="needs the clicks of each session, but the rows of this log are means over several sessions"
    ):
        aggregate(aggregate(full_log()), history_weights)


# What aggregating is for: the gradient of a full batch is the same.


class SmallNetwork(torch.nn.Module):
    """A number for each document of each list, [M, K], of its features and position."""

    def __init__(self, n_features: int, k: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.hidden = torch.nn.Parameter(torch.randn(n_features, 8, generator=generator, dtype=torch.float64))
        self.position = torch.nn.Parameter(torch.randn(k, 8, generator=generator, dtype=torch.float64))
        self.out = torch.nn.Parameter(torch.randn(8, generator=generator, dtype=torch.float64))

    def forward(self, log: ClickLog) -> torch.Tensor:
        rows = np.where(log.where, log.candidates.offsets[log.query, None] + log.ranking, 0)
        documents = torch.from_numpy(log.candidates.features[rows].astype(np.float64))
        values: torch.Tensor = torch.tanh(documents @ self.hidden + self.position) @ self.out
        return values


def td_error(network: SmallNetwork, log: ClickLog) -> torch.Tensor:
    """½ Σ (Q(s, a) − r − γV(s′))², the value of the next state without gradient."""
    where, clicks, count = as_tensors(log)
    q = network(log)
    next_value = torch.zeros_like(q)
    next_value[:, :-1] = torch.where(where[:, 1:], q.detach()[:, 1:], 0)
    errors: torch.Tensor = 0.5 * count * where * (q - clicks - 0.8 * next_value) ** 2
    return errors.sum()


def listwise_loss(network: SmallNetwork, log: ClickLog) -> torch.Tensor:
    """−Σ w_k c_k log softmax, w by position."""
    where, clicks, count = as_tensors(log)
    weights = torch.tensor([1.0, 1.5, 2.5, 4.0], dtype=torch.float64)
    log_softmax = torch.log_softmax(network(log).masked_fill(~where, -torch.inf), dim=1)
    return -(count * weights * clicks * log_softmax.masked_fill(~where, 0)).sum()


def as_tensors(log: ClickLog) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    count = torch.from_numpy(log.count.astype(np.float64))[:, None]
    return torch.from_numpy(log.where), torch.from_numpy(log.clicks.astype(np.float64)), count


def gradient(loss: torch.Tensor, network: SmallNetwork) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, list(network.parameters())))


@pytest.mark.parametrize("loss", [td_error, listwise_loss])
def test_the_full_batch_gradient_is_the_same(loss: Callable[[SmallNetwork, ClickLog], torch.Tensor]) -> None:
    log = random_log(candidates_of(5, 2, 9, 4), sessions=1_000, k=4)
    aggregated = aggregate(log)
    assert len(aggregated) <= 8
    network = SmallNetwork(n_features=3, k=4)
    raw, by_list = (gradient(loss(network, rows), network) for rows in (log, aggregated))
    torch.testing.assert_close(by_list, raw, rtol=1e-10, atol=1e-10)
    assert all(part.abs().max() > 1 for part in raw)


def test_the_gradient_is_the_same_with_weights_of_each_sessions_own_clicks() -> None:
    log = random_log(candidates_of(5, 2, 9, 4), sessions=1_000, k=4)
    weighted = replace(log, clicks=log.clicks * history_weights(log.clicks), count=log.count.copy(), aggregated=True)
    network = SmallNetwork(n_features=3, k=4)
    raw = gradient(listwise_loss(network, weighted), network)
    by_list = gradient(listwise_loss(network, aggregate(log, history_weights)), network)
    torch.testing.assert_close(by_list, raw, rtol=1e-10, atol=1e-10)


def test_weights_made_from_mean_clicks_would_be_wrong() -> None:
    log = random_log(candidates_of(5, 2, 9, 4), sessions=1_000, k=4)
    means = aggregate(log)
    wrong = means.clicks * history_weights(means.clicks)
    assert np.abs(wrong - aggregate(log, history_weights).clicks).max() > 0.01
