import numpy as np
import pytest
from torch import Tensor

from cuolr.clicks.base import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate
from cuolr.learners.batches import scaled_documents
from cuolr.learners.counted_lists import CountedLists, count_lists
from cuolr.learners.examination import Examination, fit_attractiveness, fit_examination
from cuolr.learners.logged_order import fit_logged_order
from cuolr.ranksvm import fit_ranksvm
from cuolr.types import Doubles, Ints
from tests.small_log import small_log


def scores_and_documents(counted: CountedLists) -> tuple[Tensor, Doubles, Ints]:
    """Scaled candidates, their scores by the logged order, and which of them stand where."""
    candidates = counted.lists.candidates
    normaliser = Normaliser.fit("log-min-max", candidates)
    features = scaled_documents(candidates, normaliser, np.ones(candidates.n_documents, np.bool_))
    documents = np.where(counted.lists.where, candidates.offsets[counted.lists.query, None] + counted.lists.ranking, 0)
    linear = fit_logged_order(counted.lists, normaliser, 1)
    assert linear is not None
    scores = features.double().numpy() @ linear.weights
    return features, (scores - scores.mean()) / scores.std(), documents


def fitted(counted: CountedLists) -> Examination:
    _, scores, documents = scores_and_documents(counted)
    return fit_examination(counted, scores[documents])


def learned(name: str, share: float = 0.01, sessions_per_query: int = 200) -> Examination:
    """From clicks of simulated users on lists of a ranker that learned from a share of the labels."""
    train = generate("web10k-like", 600, seed=3)
    log = simulate(train, fit_ranksvm(train, share, 1), click_model(name), 600 * sessions_per_query, seed=1)
    return fitted(count_lists(log))


loggers = pytest.mark.parametrize("share", [0.01, 1.0], ids=["weak logger", "strong logger"])


@pytest.mark.thorough
@loggers
@pytest.mark.parametrize("sessions_per_query", [10, 200])
def test_it_learns_that_a_position_based_user_looks_whatever_was_clicked(share: float, sessions_per_query: int) -> None:
    table = learned("pbm", share, sessions_per_query).table
    truth = np.array(click_model("pbm").examination)  # type: ignore[attr-defined]
    truth = (truth / truth[0])[:8]
    np.testing.assert_allclose(table[:8, 0], truth, atol=0.1 if sessions_per_query == 200 else 0.15)
    after_click = np.array([table[k, k] for k in range(1, 8)])
    np.testing.assert_allclose(after_click, truth[1:], atol=0.1 if sessions_per_query == 200 else 0.25)


@pytest.mark.thorough
@loggers
def test_it_learns_that_a_cascade_user_stops_at_a_click(share: float) -> None:
    table = learned("cascade", share).table
    assert (table[:, 0] > 0.75).all(), "nothing clicked yet: still reading"
    assert all(table[k, j] < 0.02 for k in range(1, 10) for j in range(1, k + 1)), "after a click nobody looks"


@pytest.mark.thorough
@loggers
def test_it_learns_how_a_dependent_click_user_goes_on_after_a_click(share: float) -> None:
    table = learned("dcm", share).table
    truth = np.array(click_model("dcm").continuation)  # type: ignore[attr-defined]
    just_below = np.array([table[k, k] / table[k, 0] for k in range(1, 8)])  # the last click is right above
    np.testing.assert_allclose(just_below, truth[:7], atol=0.1)
    np.testing.assert_allclose(table[:8, 0], 1.0, atol=0.25)


def test_a_click_above_changes_looking_by_the_ratio_of_click_rates_on_the_same_document() -> None:
    """One list: half of the users who clicked at position 1 look no further."""
    log = small_log(rows=1)
    log = log.select(np.zeros(20_000, np.int64))
    rng = np.random.default_rng(0)
    first = rng.random(len(log)) < 0.4
    looks = ~first | (rng.random(len(log)) < 0.5)
    log.clicks[:] = 0
    log.clicks[:, 0], log.clicks[:, 1] = first, looks & (rng.random(len(log)) < 0.3)
    table = fit_examination(count_lists(log), np.zeros((1, log.k))).table
    assert table[1, 1] / table[1, 0] == pytest.approx(0.5, abs=0.03)


def test_nobody_who_has_not_clicked_looks_further_down_more_than_at_the_first_position() -> None:
    """One list whose second document is clicked three times as often as its first."""
    log = small_log(rows=1).select(np.zeros(400, np.int64))
    log.clicks[:] = 0
    log.clicks[:100, 0] = log.clicks[100:400, 1] = 1
    table = fit_examination(count_lists(log), np.zeros((1, log.k))).table
    assert table[0, 0] == table[1, 0] == 1


def test_what_the_log_never_shows_is_not_known_and_counts_for_nothing() -> None:
    log = small_log(rows=50)
    log.clicks[:] = 0
    counted = count_lists(log)
    found = fitted(counted)
    assert np.isnan(found.table[:, 1:]).all()
    assert found.table[0, 0] == 1.0
    looked = found.looked(counted)
    np.testing.assert_allclose(
        looked, counted.lists.count[:, None] * found.table[:, 0] * counted.lists.where, rtol=1e-6
    )


def test_looks_are_the_sum_of_chi_over_sessions() -> None:
    counted = count_lists(small_log(rows=200))
    found = fitted(counted)
    expected = np.zeros(counted.lists.where.shape)
    passed, _ = counted.dense(np.arange(len(counted.lists)))
    for row, position, last in zip(*np.nonzero(passed), strict=True):
        expected[row, position] += passed[row, position, last] * found.table[position, last]
    np.testing.assert_allclose(found.looked(counted), expected, rtol=1e-6)


def attractiveness(counted: CountedLists, steps: int, seed: int = 1) -> Doubles:
    features, scores, documents = scores_and_documents(counted)
    examination = fit_examination(counted, scores[documents])
    return fit_attractiveness(counted, examination, features, scores, documents, steps, 1e-2, 64, seed)


def test_attractiveness_is_learned_from_the_features() -> None:
    log = small_log(rows=3_000, queries=60)  # clicked by the first feature
    found = attractiveness(count_lists(log), steps=150)
    assert np.corrcoef(found[:-1], log.candidates.features[:, 0])[0, 1] > 0.8
    assert ((found > 0) & (found < 1)).all()


def test_the_same_seed_gives_the_same_attractiveness_and_another_seed_another() -> None:
    counted = count_lists(small_log(rows=300))
    first = attractiveness(counted, steps=5)
    np.testing.assert_array_equal(attractiveness(counted, steps=5), first)
    assert (attractiveness(counted, steps=5, seed=2) != first).any()
