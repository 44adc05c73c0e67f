"""Ranking one request: the same scores as ranking a table, whatever form the documents have."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.networks.encoder import build_encoder
from cuolr.networks.layers import PairNetwork, seeded
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.policy import RankingPolicy, ScaledScoringPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.policies.rank_one import rank_one
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.policies.trees_policy import TreesPolicy, grow_ranking_trees
from cuolr.types import Candidates, Floats
from tests.small_log import small_candidates, with_missing_values

NAMES = np.array(["price", "stars", "clicks", "age"])
TRAINING = replace(with_missing_values(small_candidates(queries=30)), feature_names=NAMES)


def linear(kind: str = "min-max") -> LinearPolicy:
    normaliser = Normaliser.fit(kind, TRAINING)
    return LinearPolicy(np.array([1.0, -0.5, 0.25, 2.0, 0.3, -0.7], np.float32), normaliser)


def trees(kind: str = "none") -> TreesPolicy:
    normaliser = Normaliser.fit(kind, TRAINING)
    scaled = normaliser.natively(normaliser.apply(TRAINING).features)
    grades = (scaled[:, 0] > np.median(scaled[:, 0])).astype(np.int8)
    parameters = {"num_threads": 1, "min_data_in_leaf": 2, "num_leaves": 7}
    return TreesPolicy(grow_ranking_trees(scaled, grades, TRAINING.sizes, parameters, 20), 1, normaliser)


def sequential() -> SequentialPolicy:
    normaliser = Normaliser.fit("min-max", TRAINING)
    with seeded(1):
        encoder = build_encoder("position+previous", {}, 6, 5)
        return SequentialPolicy(encoder, PairNetwork(encoder.n_states, 6, (8, 8)), normaliser)


def some_documents(n: int = 12, seed: int = 3, missing: float = 0.2) -> Floats:
    """Values are missing in features 1 and 2, too, which always had one in training."""
    rng = np.random.default_rng(seed)
    features = (rng.standard_normal((n, 4)) * np.arange(1, 5)).astype(np.float32)
    features[rng.random((n, 4)) < missing] = np.nan
    return features


def as_dictionaries(features: Floats) -> list[dict[str, Any]]:
    return [
        {"doc_id": f"d{row}", **dict(zip(NAMES.tolist(), values, strict=True))}
        for row, values in enumerate(features.tolist())
    ]


@pytest.mark.parametrize("policy", [linear(), linear("query-min-max"), trees(), trees("log-min-max")])
def test_every_form_gives_the_scores_of_the_policy_to_the_bit(policy: ScaledScoringPolicy) -> None:
    features = some_documents()
    candidates = Candidates(features, np.array([0, len(features)]), np.array(["q"]))
    scores = policy.score(candidates)
    dictionaries = as_dictionaries(features)
    frame = pl.DataFrame(dictionaries)
    ids = [f"d{row}" for row in range(len(features))]
    for found in (
        rank_one(policy, features, ids),
        rank_one(policy, features.astype(np.float64), ids),
        rank_one(policy, dictionaries),
        rank_one(policy, frame),
        rank_one(policy, frame.select(reversed(frame.columns))),
        rank_one(policy, pytest.importorskip("pandas").DataFrame(dictionaries)),
    ):
        assert found.scores is not None
        np.testing.assert_array_equal(found.index, policy.rank(candidates, len(features))[0])
        np.testing.assert_array_equal(found.scores, scores[found.index])
        assert found.ids == [ids[row] for row in found.index]


@pytest.mark.parametrize("policy", [linear(), trees(), trees("min-max")])
def test_a_score_does_not_depend_on_the_other_documents(policy: ScaledScoringPolicy) -> None:
    features = some_documents(30)
    together = rank_one(policy, features)
    assert together.scores is not None
    for row, score in zip(together.index, together.scores, strict=True):
        alone = rank_one(policy, features[row : row + 1])
        assert alone.scores is not None
        assert alone.scores[0] == score


def test_scores_are_worked_by_hand_and_missing_values_are_the_median() -> None:
    training = Candidates(np.array([[0.0, 1], [4, 1], [1, 5]], np.float32), np.array([0, 3]), np.array(["q"]))
    policy = LinearPolicy(np.array([1.0, 10.0], np.float32), Normaliser.fit("min-max", training))
    # [0, 4] and [1, 5] become [−1, 1]; the median of the first feature is 1, that of the second 1.
    found = rank_one(policy, [{"1": 4, "2": 1}, {"1": None, "2": 3}, {"1": 2, "2": float("nan")}])
    assert found.ids == ["2", "1", "3"]
    assert found.scores is not None
    assert found.scores.tolist() == [-0.5 + 0.0, 1.0 - 10.0, 0.0 - 10.0]


def test_a_policy_that_places_one_document_after_the_other_has_no_scores() -> None:
    policy, features = sequential(), some_documents()
    found = rank_one(policy, features, k=4)
    assert found.scores is None
    candidates = Candidates(features, np.array([0, len(features)]), np.array(["q"]))
    np.testing.assert_array_equal(found.index, policy.rank(candidates, 4)[0])
    assert rank_one(policy, as_dictionaries(features), k=4).ids == [f"d{row}" for row in found.index]
    assert len(rank_one(policy, features).ids) == len(features)
    assert rank_one(policy, features[:0]).scores is None


def test_a_name_that_only_some_documents_have_is_missing_in_the_others() -> None:
    policy = trees()
    partly = [{"price": 1.0, "stars": 2.0, "clicks": 3.0, "age": 4.0}, {"price": 1.0, "stars": 2.0, "age": 4.0}]
    fully = [partly[0], {**partly[1], "clicks": None}]
    one, other = rank_one(policy, partly).scores, rank_one(policy, fully).scores
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one, other)


def test_a_model_of_letor_features_takes_their_numbers_and_0_where_one_is_left_out() -> None:
    training = small_candidates()
    policy = LinearPolicy(np.ones(4, np.float32), Normaliser.fit("min-max", training))
    found = rank_one(policy, [{"1": 1.0, "4": 2.0}])
    whole = rank_one(policy, np.array([[1.0, 0, 0, 2.0]]))
    assert found.scores == whole.scores


def test_categories_dates_and_text_are_read_by_the_recipe_of_the_model() -> None:
    table = pl.DataFrame(
        {
            "query_id": ["a", "a", "b", "b"],
            "doc_id": ["1", "2", "1", "2"],
            "kind": ["hotel", "hostel", "hotel", None],
            "price": [100.0, 20.0, None, 50.0],
            "opened": ["2020-01-01", "2021-01-01", "2019-01-01", "2020-06-01"],
        }
    )
    candidates = read_candidates(table)
    normaliser = Normaliser.fit("min-max", candidates)
    width = candidates.n_features + normaliser.n_indicators
    policy = LinearPolicy(np.arange(1, width + 1, dtype=np.float32), normaliser)
    wanted = policy.score(candidates)[:2]
    documents = table.head(2).drop("query_id").to_dicts()
    found = rank_one(policy, documents)
    assert found.scores is not None
    np.testing.assert_array_equal(found.scores, wanted[found.index])
    as_text = [{**document, "price": str(document["price"])} for document in documents]
    np.testing.assert_array_equal(rank_one(policy, as_text).scores, found.scores)
    with pytest.raises(InputError, match="column 'price': expected a number, found 'cheap'"):
        rank_one(policy, [{**documents[0], "price": "cheap"}])


def test_ties_keep_the_order_of_the_input_and_k_cuts_the_list() -> None:
    policy = LinearPolicy(np.array([1.0, 0, 0, 0, 0, 0], np.float32), Normaliser.fit("none", TRAINING))
    found = rank_one(policy, np.array([[1.0, 0, 0, 0], [2, 0, 0, 0], [1, 0, 0, 0]]), ids=["a", "b", "c"], k=2)
    assert (found.ids, found.index.tolist()) == (["b", "a"], [1, 0])


@pytest.mark.parametrize(
    "empty", [[], np.empty((0, 4), np.float32), pl.DataFrame(schema=dict.fromkeys(NAMES, pl.Float32))]
)
def test_no_documents_give_an_empty_list(empty: Any) -> None:
    found = rank_one(linear(), empty)
    assert found.ids == []
    assert found.scores is not None
    assert len(found.scores) == len(found.index) == 0


GOOD = {"price": 1.0, "stars": 2.0, "clicks": 3.0, "age": 4.0}


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([{**GOOD, "prize": 1.0}], "documents: feature 'prize' is not one of the model (did you mean 'price'?)"),
        (
            [{"prize": 1.0, "stars": 2.0, "clicks": 3.0, "age": 4.0}],
            "documents: feature 'prize' is not one of the model (did you mean 'price'?) (and 1 more problems)",
        ),
        (
            [{"price": 1.0, "stars": 2.0, "age": 4.0}],
            "documents: feature 'clicks' is missing in all documents; if it is not known, give None (null)",
        ),
        ([{**GOOD, "age": float("inf")}], "document '1', feature 4: expected a finite number in float32"),
        ([{**GOOD, "age": 1e300}], "document '1', feature 4: expected a finite number in float32"),
        ([{**GOOD, "age": 10**400}], "documents: expected numbers in the range of float32, found a larger one"),
        ([GOOD, {**GOOD, "doc_id": "a"}], "documents: expected doc_id in all or none, found it in 1 of 2"),
        ([[1.0, 2.0]], "documents: expected dictionaries of features by name; give numbers as an array [n, features]"),
        (
            np.zeros((2, 3), np.float32),
            "documents: expected an array of the shape [documents, 4], as in training, found [2, 3]",
        ),
        (np.zeros(4), "documents: expected an array of the shape [documents, 4], as in training, found [4]"),
        (np.full((1, 4), "a"), "documents: expected an array of numbers, found <U1"),
        (
            pl.DataFrame({"query_id": ["a", "b"], **{name: [1.0, 2.0] for name in NAMES.tolist()}}),
            "documents: expected those of one query, found several values of query_id; use rank",
        ),
        (
            "documents.csv",
            "documents: expected dictionaries, a data frame or an array, found a path; read_candidates reads files",
        ),
    ],
)
def test_wrong_documents_are_refused_in_one_line(documents: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        rank_one(linear(), documents)
    assert raised.value.problems == [message]


def test_a_nested_value_is_refused() -> None:
    with pytest.raises(InputError):
        rank_one(linear(), [{**GOOD, "age": [1, 2]}])
    with pytest.raises(InputError):
        rank_one(linear(), [{**GOOD, "age": {"a": 1}}])


def test_ids_of_another_number_and_a_length_of_0_are_refused() -> None:
    with pytest.raises(InputError, match="ids: expected one for each of 1 documents, found 2"):
        rank_one(linear(), [GOOD], ids=["a", "b"])
    with pytest.raises(InputError, match="k: expected"):
        rank_one(linear(), [GOOD], k=0)


def test_a_document_without_a_score_is_an_error_not_the_last() -> None:
    policy = linear()
    without_rule = replace(policy, weights=policy.weights[:4], normaliser=replace(policy.normaliser, missing=None))
    with pytest.raises(InputError, match="document 'b' has no score: the model has no rule for its missing features"):
        rank_one(without_rule, np.array([[1.0, 1, 1, 1], [np.nan, 1, 1, 1]]), ids=["a", "b"])


def test_a_policy_without_features_ranks_by_number_of_documents() -> None:
    policy: RankingPolicy = RandomPolicy(1)
    assert sorted(rank_one(policy, np.zeros((3, 2))).ids) == ["1", "2", "3"]
    with pytest.raises(InputError, match="the model uses no features; give an array"):
        rank_one(policy, [GOOD])
