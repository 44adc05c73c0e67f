"""A student ranks as its teacher does, on queries that it has not seen, whatever the teacher and the student are."""

from dataclasses import replace

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate
from cuolr.distillation.distil import LIST_LENGTH, agreement_of_top, distil, shared_documents, teacher_scores
from cuolr.distillation.student import StudentConfig, StudentKind, fit_student, is_fast
from cuolr.errors import InputError
from cuolr.networks.encoder import build_encoder
from cuolr.networks.layers import PairNetwork, seeded
from cuolr.policies.browsing_users import LastClickUsers
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.planned_policy import PlannedPolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Candidates
from tests.small_log import small_candidates, with_missing_values

QUERIES = generate("tiny", 200, seed=1).candidates
OTHERS = generate("tiny", 60, seed=1, split="vali").candidates
QUICK = StudentConfig(trees=60, steps=200, hidden=(16,))


def linear(candidates: Candidates = QUERIES, seed: int = 0) -> LinearPolicy:
    normaliser = Normaliser.fit("log-min-max", candidates)
    width = candidates.n_features + normaliser.n_indicators
    return LinearPolicy(np.random.default_rng(seed).standard_normal(width).astype(np.float32), normaliser)


def ensemble() -> EnsemblePolicy:
    return EnsemblePolicy([linear(seed=1), linear(seed=2)], [0.5, 2.0])


def planned() -> PlannedPolicy:
    after_click = np.array([[1.0, 1.0, 1.0, 1.0], [0.9, 0.5, 1.0, 1.0], [0.8, 0.4, 1.0, 1.0]])
    return PlannedPolicy(linear(), LastClickUsers(after_click), -0.5, 0.7, 0.0)


def sequential() -> SequentialPolicy:
    with seeded(1):
        encoder = build_encoder("position", {}, QUERIES.n_features, 10)
        scorer = PairNetwork(encoder.n_states, QUERIES.n_features, (8, 8))
        return SequentialPolicy(encoder, scorer, Normaliser.fit("log-min-max", QUERIES))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["trees", "linear", "network"])
@pytest.mark.parametrize("teacher", [ensemble(), planned(), sequential()])
def test_a_student_has_most_of_the_teachers_top_3_on_other_queries(kind: StudentKind, teacher: RankingPolicy) -> None:
    found = distil(teacher, QUERIES, kind, QUICK)
    assert (found.queries, found.held_out) == (180, 20)
    agreement = agreement_of_top(teacher, found.student, OTHERS, k=3)
    by_chance = agreement_of_top(teacher, RandomPolicy(1), OTHERS, k=3)
    assert agreement > 0.65 > by_chance + 0.25
    assert by_chance < found.agreement <= 1


def test_a_linear_student_finds_the_weights_of_a_linear_teacher() -> None:
    teacher = ensemble()
    found = distil(teacher, QUERIES, "linear", StudentConfig(steps=600))
    assert isinstance(found.student, LinearPolicy)
    weights = 0.5 * linear(seed=1).weights + 2.0 * linear(seed=2).weights
    assert np.corrcoef(found.student.weights, weights)[0, 1] > 0.99


def test_trees_compare_raw_features_and_nothing_is_scaled() -> None:
    student = distil(ensemble(), QUERIES, "trees", QUICK).student
    assert isinstance(student, TreesPolicy)
    assert (student.normaliser.kind, is_fast(student), is_fast(ensemble())) == ("none", True, False)


def test_the_same_seed_gives_the_same_student_and_another_seed_another() -> None:
    one, again, other = (distil(ensemble(), QUERIES, "trees", replace(QUICK, seed=seed)).student for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.score(QUERIES), again.score(QUERIES))
    assert (one.score(QUERIES) != other.score(QUERIES)).any()


@pytest.mark.parametrize("kind", ["trees", "linear"])
def test_missing_values_names_and_the_teachers_rules_are_kept(kind: StudentKind) -> None:
    names = np.array(["a", "b", "c", "d"])
    candidates = replace(with_missing_values(small_candidates(queries=60)), feature_names=names)
    student = distil(linear(candidates), candidates, kind, QUICK).student
    assert student.feature_names is not None
    assert student.feature_names.tolist() == names.tolist()
    assert np.isfinite(student.score(candidates)).all()
    turned = replace(candidates, features=candidates.features[:, ::-1], feature_names=names[::-1])
    np.testing.assert_array_equal(student.score(turned), student.score(candidates))


def test_candidates_with_columns_in_another_order_teach_the_same() -> None:
    candidates = replace(QUERIES, feature_names=np.array([f"f{i}" for i in range(QUERIES.n_features)]))
    assert candidates.feature_names is not None
    turned = replace(candidates, features=candidates.features[:, ::-1], feature_names=candidates.feature_names[::-1])
    teacher = linear(candidates)
    one, other = (fit_student("trees", teacher, c, teacher_scores(teacher, c), QUICK) for c in (candidates, turned))
    np.testing.assert_array_equal(one.score(candidates), other.score(candidates))


def test_ratings_are_centred_scores_in_units_of_their_spread() -> None:
    features = np.array([[1.0], [3.0], [10.0], [16.0]], np.float32)
    candidates = Candidates(features, np.array([0, 2, 4]), np.array(["a", "b"]))
    teacher = LinearPolicy(np.array([1.0], np.float32), Normaliser.fit("none", candidates))
    # Centred: −1, 1, −3, 3; their standard deviation is √((1 + 1 + 9 + 9) / 4) = √5.
    np.testing.assert_allclose(teacher_scores(teacher, candidates), np.array([-1, 1, -3, 3]) / np.sqrt(5))


def test_the_ratings_of_a_list_fall_with_the_logarithm_of_the_position() -> None:
    candidates = QUERIES.select(np.arange(40))
    teacher = sequential()
    ratings = teacher_scores(teacher, candidates)
    ranking = teacher.rank(candidates, LIST_LENGTH)
    for query, order in enumerate(ranking):
        rated = ratings[candidates.offsets[query] + order[order >= 0]]
        steps = np.diff(rated)
        assert (steps < 0).all()
        if len(steps) > 1:
            assert steps[0] / steps[1] == pytest.approx(np.log(2) / np.log(1.5))


def test_a_teacher_that_rates_all_alike_gives_a_student_that_does() -> None:
    teacher = LinearPolicy(np.zeros(QUERIES.n_features, np.float32), Normaliser.fit("min-max", QUERIES))
    assert (teacher_scores(teacher, QUERIES) == 0).all()
    assert np.ptp(distil(teacher, QUERIES, "trees", QUICK).student.score(QUERIES)) == 0


def test_agreement_is_worked_by_hand() -> None:
    assert shared_documents(np.array([[0, 1, 2], [4, -1, -1]]), np.array([[2, 3, 0], [4, -1, -1]])).tolist() == [2, 1]
    features = np.array([[1.0, 0], [2, 0], [3, 9], [4, 1], [5, 0]], np.float32)
    candidates = Candidates(features, np.array([0, 4, 5, 5]), np.array(["a", "b", "empty"]))
    normaliser = Normaliser.fit("none", candidates)
    one, other = (LinearPolicy(np.array(w, np.float32), normaliser) for w in ([1, 0], [-1, 1]))
    # Top 2 of the first query: documents 3 and 2, and 2 and 0; of the second, its only one.
    assert agreement_of_top(one, other, candidates, k=2) == pytest.approx((1 / 2 + 1) / 2)


def test_only_so_many_documents_are_used() -> None:
    found = distil(ensemble(), QUERIES, "trees", replace(QUICK, max_documents=200))
    assert found.queries + found.held_out < 60


def test_a_teacher_without_features_has_a_student_of_its_own_scaling() -> None:
    assert np.isfinite(distil(RandomPolicy(1), QUERIES, "linear", QUICK).agreement)


def test_too_few_queries_are_an_error() -> None:
    with pytest.raises(InputError, match="expected at least 2 queries with 2 documents or more, found 1"):
        distil(ensemble(), QUERIES.select(np.array([0])))


def test_the_provenance_is_that_of_the_teacher_and_says_what_the_student_is() -> None:
    found = distil(ensemble(), QUERIES, "trees", QUICK)
    provenance = found.provenance({"log": {"clicks_sha256": "x"}})
    assert provenance["log"] == {"clicks_sha256": "x"}
    assert provenance["student"]["kind"] == "trees"
    assert provenance == distil(ensemble(), QUERIES, "trees", QUICK).provenance({"log": {"clicks_sha256": "x"}})
