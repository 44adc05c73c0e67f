import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.config import SettingError
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate_splits
from cuolr.errors import InputError
from cuolr.learners.counterfactual import unbiased_lambdamart
from cuolr.learners.counterfactual.unbiased_lambdamart import (
    ClickPairs,
    PairwiseLists,
    UnbiasedLambdaMartConfig,
    UnbiasedTrees,
)
from cuolr.learners.rankers.ensemble import EnsembleConfig, lightgbm_parameters
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.random_policy import UniformLogger
from cuolr.training.presets.configure import configure
from tests.data.small_data import candidates_of, log_of
from tests.small_log import small_log
from tests.training.tasks import fit_log


@pytest.mark.parametrize("ranker", ["network", "ensemble"])
def test_there_is_no_other_ranker(ranker: str) -> None:
    with pytest.raises(SettingError, match="'ranker': pairwise debiasing weights the pairs of LambdaMART"):
        UnbiasedLambdaMartConfig(ranker=ranker)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"'learner\.ranker': pairwise debiasing .* found '" + ranker):
        configure("unbiased-lambdamart", settings={"learner.ranker": ranker})


def test_an_aggregated_log_is_refused() -> None:
    with pytest.raises(InputError, match="unbiased-lambdamart needs the clicks of each session"):
        fit_log(aggregate(small_log()), configure("unbiased-lambdamart"))


def new_trees(log: ClickLog, regularisation: float = 0.0) -> tuple[UnbiasedTrees, ScaledDocuments]:
    normaliser = Normaliser.fit("log-min-max", log.candidates)
    shown, pairs = ScaledDocuments.of(log, normaliser), ClickPairs.of(log)
    lists = PairwiseLists(shown.features[:-1], shown.documents[pairs.first], pairs)
    parameters = lightgbm_parameters(EnsembleConfig(min_documents_per_leaf=3), threads=1, seed=1)
    return UnbiasedTrees(lists, parameters, regularisation, normaliser), shown


@pytest.mark.parametrize("regularisation", [0.0, 1.0])
def test_gradients_and_biases_are_those_of_a_loop_over_sessions(regularisation: float) -> None:
    log = small_log(rows=80, queries=3)
    trees, shown = new_trees(log, regularisation)
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(len(shown.rows))
    k = log.k
    plus, minus = rng.uniform(0.5, 1.5, (2, k))
    trees.click_bias, trees.skip_bias = plus.copy(), minus.copy()
    gradient, curvature = np.zeros((2, len(scores)))
    clicked, skipped = np.zeros((2, k))
    for documents, clicks in zip(shown.documents.tolist(), log.clicks.tolist(), strict=True):
        real = [i for i in range(k) if documents[i] < len(scores)]
        order = sorted(real, key=lambda i: -scores[documents[i]])
        discount = {i: 1 / math.log2(order.index(i) + 2) for i in real}
        ideal = sum(1 / math.log2(place + 2) for place in range(sum(clicks)))
        for i in real:
            for j in real:
                if clicks[i] and not clicks[j]:
                    margin = scores[documents[i]] - scores[documents[j]]
                    delta = abs(discount[i] - discount[j]) / ideal
                    wrong = 1 / (1 + math.exp(margin))
                    step = delta / (plus[i] * minus[j])
                    gradient[documents[i]] -= wrong * step
                    gradient[documents[j]] += wrong * step
                    curvature[[documents[i], documents[j]]] += wrong * (1 - wrong) * step
                    loss = delta * math.log(1 + math.exp(-margin))
                    clicked[i] += loss / minus[j]
                    skipped[j] += loss / plus[i]
    found = trees.gradients(scores)
    np.testing.assert_allclose(found, [gradient, curvature], rtol=1e-9, atol=1e-12)
    exponent = 1 / (regularisation + 1)
    np.testing.assert_allclose(trees.click_bias, (clicked / clicked[0]) ** exponent)
    np.testing.assert_allclose(trees.skip_bias, (skipped / skipped[0]) ** exponent)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_bias_of_clicks_is_examination_where_lists_are_random(seed: int) -> None:
    model, sessions = PositionBasedModel(), 30_000
    train, _, _ = generate_splits("tiny", 60, 4, 4, seed=seed)
    log = concatenate(Simulation(train, UniformLogger(), model, sessions, k=5, seed=seed).blocks(), sessions)
    trees, _ = new_trees(log)
    for _ in range(30):
        trees.step()
    np.testing.assert_allclose(trees.click_bias, np.array(model.examination[:5]) / model.examination[0], rtol=0.15)
    assert (np.diff(trees.skip_bias) > 0).all()  # a skip says less, the further down it is


def test_a_clicked_feature_is_learned() -> None:
    log = small_log(rows=400, queries=12)
    trees, shown = new_trees(log)
    for _ in range(20):
        trees.step()
    assert np.corrcoef(trees.score(shown.features[:-1]), shown.features[:-1, 0])[0, 1] > 0.7


def test_resuming_equals_not_stopping() -> None:
    whole, _ = new_trees(small_log(rows=200))
    resumed, shown = new_trees(small_log(rows=200))
    for _ in range(4):
        whole.step()
    resumed.load_state({"trees": 3})
    resumed.step()
    np.testing.assert_array_equal(resumed.score(shown.features), whole.score(shown.features))
    np.testing.assert_array_equal(resumed.click_bias, whole.click_bias)


SECOND = 1 / math.log2(3)


def weights(pairs: ClickPairs, lists: list[tuple[int, ...]]) -> dict[tuple[tuple[int, ...], int, int], float]:
    """By the list, the clicked and the skipped position."""
    rows = zip(pairs.list.tolist(), pairs.clicked.tolist(), pairs.skipped.tolist(), pairs.weight.tolist(), strict=True)
    return {(lists[pairs.first[row]], i, j): weight for row, i, j, weight in rows}


def test_pairs_of_a_list_are_summed_over_its_sessions() -> None:
    rankings = [[0, 1, 2], [0, 1, 2], [2, 1, -1], [0, 1, 2], [2, 1, -1]]
    clicks = [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]]
    log = log_of(candidates_of(3), [0] * 5, rankings, clicks)
    both = 1 / (1 + SECOND)
    expected = {
        ((0, 1, 2), 0, 1): 1.0,
        ((0, 1, 2), 0, 2): 1.0 + both,
        ((0, 1, 2), 1, 2): both,
        ((2, 1, -1), 1, 0): 1.0,
    }
    assert weights(ClickPairs.of(log), [tuple(row) for row in rankings]) == pytest.approx(expected)


def test_lists_of_different_queries_are_different_lists() -> None:
    log = log_of(candidates_of(2, 2), [0, 1], [[0, 1], [0, 1]], [[1, 0], [1, 0]])
    assert sorted(ClickPairs.of(log).list.tolist()) == [0, 1]


def test_a_pair_has_the_reward_of_its_click() -> None:
    log = log_of(candidates_of(2), [0, 0], [[0, 1], [0, 1]], [[1, 0], [1, 0]])
    log = replace(log, reward=np.array([[2.5, 0], [0.5, 0]], np.float32))
    assert ClickPairs.of(log).weight.tolist() == [3.0]


def test_sessions_in_chunks_give_the_same_as_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbiased_lambdamart, "SESSIONS_AT_A_TIME", 7)
    log = small_log(rows=60, queries=2)
    expected: dict[tuple[tuple[int, ...], int, int], float] = defaultdict(float)
    keys = [(int(q), *map(int, row)) for q, row in zip(log.query, log.ranking, strict=True)]
    for key, row, clicks in zip(keys, log.ranking.tolist(), log.clicks.tolist(), strict=True):
        ideal = sum(1 / math.log2(place + 2) for place in range(sum(clicks)))
        for i in range(len(row)):
            for j in range(len(row)):
                if clicks[i] and not clicks[j] and row[j] >= 0:
                    expected[key, i, j] += 1 / ideal
    assert weights(ClickPairs.of(log), keys) == pytest.approx(dict(expected))


def test_without_clicks_there_is_no_pair() -> None:
    log = log_of(candidates_of(2), [0], [[0, 1]], [[0, 0]])
    assert len(ClickPairs.of(log).weight) == 0
