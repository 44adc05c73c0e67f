"""Generated data sets, and how closely they resemble the public ones."""

import numpy as np
import pytest

from cuolr.data import synthetic
from cuolr.data.feature_families import FAMILIES
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import PRESETS, QUERIES_PER_BLOCK, generate, generate_splits
from cuolr.errors import InputError
from cuolr.evaluation.measures import mean_over_queries
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Floats, RankingDataset
from tests.evaluation.one_measure import measure_ranking

# Enough queries of each preset for its proportions to show.
ENOUGH = {"web10k-like": 600, "yahoo-like": 1_000, "tiny": 2_000}


@pytest.fixture(scope="module", params=sorted(PRESETS))
def preset(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def dataset(preset: str) -> RankingDataset:
    return generate(preset, ENOUGH[preset], seed=1)


def assert_same(first: RankingDataset, second: RankingDataset) -> None:
    np.testing.assert_array_equal(first.relevance, second.relevance)
    for field in ("features", "offsets", "query_ids"):
        np.testing.assert_array_equal(getattr(first.candidates, field), getattr(second.candidates, field))


def test_every_preset_is_tested() -> None:
    assert ENOUGH.keys() == PRESETS.keys()


@pytest.mark.thorough
def test_grades_come_in_the_presets_proportions(preset: str, dataset: RankingDataset) -> None:
    expected = np.array(PRESETS[preset].grades)
    shares = np.bincount(dataset.relevance, minlength=len(expected)) / len(dataset.relevance)
    # Documents of a query share their shift, so shares vary with the number of queries, not of documents.
    assert shares == pytest.approx(expected, abs=0.04)
    assert shares == pytest.approx(expected, rel=0.35)
    assert dataset.max_grade == len(expected) - 1


def test_queries_have_about_as_many_documents_as_the_preset_says(preset: str, dataset: RankingDataset) -> None:
    sizes = dataset.candidates.sizes
    assert sizes.mean() == pytest.approx(PRESETS[preset].documents, rel=0.07)
    assert np.log(sizes).std() == pytest.approx(PRESETS[preset].documents_spread, rel=0.15)
    assert sizes.min() >= 1
    assert sizes.max() <= PRESETS[preset].max_documents


def test_features_are_finite_float32(preset: str, dataset: RankingDataset) -> None:
    features = dataset.candidates.features
    assert features.dtype == np.float32
    assert features.shape == (len(dataset.relevance), PRESETS[preset].features)
    assert np.isfinite(features).all()
    assert (features.min(axis=0) < features.max(axis=0)).all()


def test_some_queries_have_no_relevant_document_and_some_have_mostly_relevant_ones(dataset: RankingDataset) -> None:
    share = np.add.reduceat((dataset.relevance > 0).astype(float), dataset.candidates.offsets[:-1])
    share /= dataset.candidates.sizes
    assert 0.005 < (share == 0).mean() < 0.2
    assert (share > 0.7).mean() > 0.03


def test_raw_web_features_are_of_very_different_size_and_tail() -> None:
    features = generate("web10k-like", 200, seed=2).candidates.features.astype(np.float64)
    low, high = features.min(axis=0), features.max(axis=0)
    assert high.max() > 1e7
    assert -80 <= low.min() < -20
    assert ((low == 0) & (high == 1)).sum() > 20
    assert ((features == 0).mean(axis=0) > 0.3).sum() > 20
    heavy = high > 1e4 * (1 + np.abs(np.median(features, axis=0)))
    assert heavy.sum() > 10


def test_yahoo_features_are_between_0_and_1_and_mostly_zero() -> None:
    features = generate("yahoo-like", 100, seed=2).candidates.features
    assert features.min() == 0
    assert features.max() <= 1
    assert 0.5 < (features == 0).mean() < 0.75


def test_query_features_are_the_same_for_all_documents_of_a_query(preset: str, dataset: RankingDataset) -> None:
    starts = dataset.candidates.offsets[:-1]
    low, high = (reduce.reduceat(dataset.candidates.features, starts, axis=0) for reduce in (np.minimum, np.maximum))
    assert (low == high).all(axis=0).sum() == PRESETS[preset].query_features


def test_the_same_seed_gives_the_same_data_and_another_seed_other_data(preset: str) -> None:
    first, same, other = (generate(preset, 10, seed) for seed in (1, 1, 2))
    assert_same(first, same)
    assert first.candidates.features.shape != other.candidates.features.shape or (
        (first.candidates.features != other.candidates.features).any()
    )


@pytest.mark.parametrize("queries", [1, 3, QUERIES_PER_BLOCK, QUERIES_PER_BLOCK + 1, 2 * QUERIES_PER_BLOCK])
def test_more_queries_begin_with_the_same_ones(queries: int) -> None:
    many = generate("tiny", 3 * QUERIES_PER_BLOCK - 5, seed=4)
    assert_same(generate("tiny", queries, seed=4), many.select(np.arange(queries)))


def test_splits_have_different_queries() -> None:
    splits = generate_splits("tiny", 30, 20, 10, seed=1)
    assert [split.candidates.n_queries for split in splits] == [30, 20, 10]
    ids = np.concatenate([split.candidates.query_ids for split in splits])
    assert len(np.unique(ids)) == 60
    documents = np.concatenate([split.candidates.features for split in splits])
    assert len(np.unique(documents, axis=0)) > 0.99 * len(documents)


def directions(dataset: RankingDataset) -> Floats:
    """[F] how far the relevant documents are from the others, in each feature."""
    scaled = Normaliser.fit("log-min-max", dataset.candidates).apply(dataset.candidates).features
    difference: Floats = scaled[dataset.relevance > 0].mean(axis=0) - scaled[dataset.relevance == 0].mean(axis=0)
    return difference


@pytest.mark.thorough
def test_splits_share_a_world_and_seeds_do_not() -> None:
    train, _, test = generate_splits("web10k-like", 300, 1, 300, seed=1)
    ours, same_world, elsewhere = map(directions, (train, test, generate("web10k-like", 300, seed=2)))
    assert np.corrcoef(ours, same_world)[0, 1] > 0.8
    assert abs(np.corrcoef(ours, elsewhere)[0, 1]) < 0.4


def test_interactions_have_the_moments_that_the_shares_of_variance_rely_on() -> None:
    factors = np.random.default_rng(0).standard_normal((200_000, 6), dtype=np.float32)
    interaction = synthetic._interaction(factors)
    error = 4 / np.sqrt(len(factors))
    assert interaction.mean() == pytest.approx(0, abs=error)
    assert interaction.var() == pytest.approx(1, abs=5 * error)
    assert interaction @ factors / len(factors) == pytest.approx(np.zeros(6), abs=3 * error)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_feature_never_falls_when_its_signal_rises(family: str) -> None:
    signal = np.linspace(-6, 6, 2_001, dtype=np.float32)[:, None]
    rng = np.random.default_rng(0)
    level, width = rng.random((2, 50), dtype=np.float32)
    values = FAMILIES[family](np.repeat(signal, 50, axis=1), level, width)
    assert np.isfinite(values).all()
    assert (np.diff(values, axis=0) >= 0).all()
    assert (values[0] < values[-1]).all()


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown preset 'web10k' \(did you mean 'web10k-like'\?\)"):
        generate("web10k", 10, seed=0)


@pytest.mark.parametrize(("queries", "seed"), [(0, 1), (-3, 1), (1, -1)])
def test_impossible_numbers_are_refused(queries: int, seed: int) -> None:
    with pytest.raises(InputError, match=r"(queries|seed): expected a whole number >= [01]"):
        generate("tiny", queries, seed)


# The paper's, but for fewer and larger steps, to fit the time.
LAMBDAMART = LambdaMartSettings(trees=200, learning_rate=0.07, early_stopping=30, threads=1)


def ndcg(policy: RankingPolicy, dataset: RankingDataset) -> float:
    return mean_over_queries(measure_ranking(dataset, policy.rank(dataset.candidates, 10), "ndcg@10"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "normalising", "logging", "oracle"),
    [("web10k-like", "log-min-max", 0.338, 0.453), ("yahoo-like", "min-max", 0.693, 0.781)],
)
def test_a_weak_and_a_strong_ranker_land_near_the_papers_rows(
    preset: str, normalising: str, logging: float, oracle: float
) -> None:
    train, validation, test = generate_splits(preset, 2_000, 400, 1_000, seed=1)
    for seed in range(3):
        ranksvm = fit_ranksvm(train, fraction=0.01, seed=seed, normalising=normalising)
        assert ndcg(ranksvm, test) == pytest.approx(logging, abs=0.03)
    assert ndcg(fit_lambdamart(train, validation, LAMBDAMART), test) == pytest.approx(oracle, abs=0.03)


@pytest.mark.thorough
def test_log_min_max_suits_raw_web_features_best() -> None:
    train, _, test = generate_splits("web10k-like", 1_000, 1, 400, seed=1)
    log_scaled, scaled = (ndcg(fit_ranksvm(train, 0.1, normalising=kind), test) for kind in ("log-min-max", "min-max"))
    assert log_scaled > scaled + 0.003
