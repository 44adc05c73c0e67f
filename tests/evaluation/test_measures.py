import itertools
import shutil
from math import log2

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import dcg_score, ndcg_score

from cuolr.errors import InputError
from cuolr.evaluation.measures import (
    GradedLists,
    Measure,
    WithoutRelevant,
    mean_over_queries,
    measure_names,
    what_counts,
)
from cuolr.policies.policy import rank_by_score
from cuolr.types import Candidates, RankingDataset
from tests.evaluation.one_measure import measure_ranking

Queries = list[list[int]]
# Measures of relevance, which a query without a relevant document does not have.
OF_RELEVANCE = [name for name in measure_names() if ":" not in name]


def dataset_of(queries: Queries, max_grade: int = 4) -> RankingDataset:
    """Queries given by their documents' grades."""
    grades = np.array([grade for query in queries for grade in query], np.int8)
    offsets = np.concatenate([[0], np.cumsum([len(query) for query in queries])]).astype(np.int64)
    names = np.array([str(i) for i in range(len(queries))])
    return RankingDataset(Candidates(np.zeros((len(grades), 1), np.float32), offsets, names), grades, max_grade)


def ranking_of(rows: list[list[int]]) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    return np.array(rows, np.int64)


some_queries = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=15), min_size=1, max_size=6)


@st.composite
def ranked_queries(draw: st.DrawFn) -> tuple[Queries, list[list[int]]]:
    """Queries, and a random order of the documents of each."""
    queries = draw(some_queries)
    return queries, [draw(st.permutations(range(len(query)))) for query in queries]


def padded(orders: list[list[int]], width: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    return ranking_of([(order + [-1] * width)[:width] for order in orders])


def test_dcg_is_the_discounted_sum_of_exponential_gains() -> None:
    values = measure_ranking(dataset_of([[0, 2, 1, 4]]), ranking_of([[3, 0, 1, 2]]), "dcg@4")
    assert values == pytest.approx([(2**4 - 1) / log2(2) + 0 / log2(3) + (2**2 - 1) / log2(4) + (2**1 - 1) / log2(5)])


def test_ndcg_divides_by_the_best_possible_list() -> None:
    values = measure_ranking(dataset_of([[1, 3, 0]]), ranking_of([[0, 2, 1]]), "ndcg@3")
    assert values == pytest.approx([(1 / log2(2) + 7 / log2(4)) / (7 / log2(2) + 1 / log2(3))])


def test_a_cutoff_cuts_the_ranking_and_the_ideal_list() -> None:
    values = measure_ranking(dataset_of([[1, 2, 2]]), ranking_of([[0, 1, 2]]), "ndcg@2")
    assert values == pytest.approx([(1 / log2(2) + 3 / log2(3)) / (3 / log2(2) + 3 / log2(3))])


def test_empty_positions_gain_nothing() -> None:
    dataset = dataset_of([[2], [1, 1, 1]])
    assert measure_ranking(dataset, ranking_of([[0, -1], [2, 1]]), "ndcg@2") == pytest.approx([1, 1])
    assert measure_ranking(dataset, ranking_of([[-1, -1], [2, -1]]), "dcg@2") == pytest.approx([0, 1 / log2(2)])


@pytest.mark.parametrize("measure", [*OF_RELEVANCE, "clicks:ubm", "satisfaction:dbn"])
def test_a_cutoff_beyond_all_documents_costs_no_memory(measure: str) -> None:
    dataset = dataset_of([[0, 1, 3], [2]])
    ranking = ranking_of([[0, 1, 2], [0, -1, -1]])
    far, near = (measure_ranking(dataset, ranking, f"{measure}@{k}") for k in (10**12, 3))
    assert far == pytest.approx(near * 3 / 10**12 if measure == "precision" else near)


def test_a_short_query_is_complete_whatever_the_cutoff() -> None:
    assert measure_ranking(dataset_of([[0, 1]]), ranking_of([[0, 1]]), "ndcg@10") == pytest.approx([1 / log2(3)])


@pytest.mark.parametrize("measure", OF_RELEVANCE)
@pytest.mark.parametrize(("option", "value"), [("zero", 0.0), ("one", 1.0), ("skip", np.nan)])
def test_a_query_without_a_relevant_document_counts_what_the_option_says(
    measure: str, option: str, value: float
) -> None:
    dataset = dataset_of([[0, 0], [0, 1], []])
    lists = GradedLists.of(dataset, ranking_of([[0, 1], [1, 0], [-1, -1]]))
    values = Measure(measure, 2).per_query(lists, option)  # type: ignore[arg-type]
    if measure in ("dcg", "dcg-linear") and option == "one":
        value = 0.0  # a sum of no gains
    np.testing.assert_equal(values[[0, 2]], [value, value])
    assert values[1] > 0


@pytest.mark.parametrize("option", ["zero", "one", "skip"])
def test_a_query_without_a_relevant_document_always_has_its_own_clicks(option: WithoutRelevant) -> None:
    lists = GradedLists.of(dataset_of([[0, 0], [0, 4], []]), ranking_of([[0, 1], [1, 0], [-1, -1]]))
    values = Measure.parse("clicks:pbm@2").per_query(lists, option)
    assert values == pytest.approx([(0.68 + 0.61) * 0.1, 0.68 * 1 + 0.61 * 0.1, 0], rel=1e-6)


def test_words_name_the_measures_that_the_option_does_not_touch() -> None:
    assert what_counts("skip", ["ndcg@10", "dcg@10"]) == "skipped"
    assert what_counts("skip", ["ndcg@10", "clicks:pbm@5"]) == "skipped (clicks:pbm@5: their own value)"
    assert what_counts("one", ["dcg@1", "dcg-linear@2"]) == "counted as 1 (dcg@1, dcg-linear@2: 0)"
    assert what_counts("zero", ["dcg@1"]) == "counted as 0"


def test_only_measures_that_depend_on_the_highest_grade_need_the_scale() -> None:
    assert [name for name in OF_RELEVANCE if Measure(name, 1).needs_scale] == ["err"]
    assert Measure.parse("clicks:pbm@1").needs_scale


def test_the_mean_leaves_out_skipped_queries() -> None:
    assert mean_over_queries(np.array([0.5, np.nan, 1.0])) == (0.5 + 1.0) / 2


def test_nothing_to_average_is_an_error() -> None:
    with pytest.raises(InputError, match="none of the 2 queries has a relevant document"):
        mean_over_queries(np.array([np.nan, np.nan]))


def test_a_list_shorter_than_the_cutoff_is_refused() -> None:
    with pytest.raises(InputError, match="at 3 needs lists of 3 documents, found 2"):
        measure_ranking(dataset_of([[0, 1, 2]]), ranking_of([[0, 1]]), "ndcg@3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", r"unknown measure 'ndgc' \(did you mean 'ndcg'\?\)"),
        ("ndcg", r"expected a cutoff from 1 to 10\^18 − 1, as in ndcg@10, found none"),
        ("ndcg@", "found ''"),
        ("ndcg@0", "found '0'"),
        ("ndcg@-1", "found '-1'"),
        ("ndcg@ten", "found 'ten'"),
        ("ndcg@²", "found '²'"),
        ("ndcg@" + "9" * 19, "found '9999999999999999999'"),
        ("ndcg@" + "9" * 5_000, "from 1 to"),
        ("", "unknown measure ''"),
        ("ndcg:pbm@10", "measure 'ndcg:pbm': 'ndcg' has no parameter, found ':pbm'"),
        ("clicks@10", "measure 'clicks': expected 'clicks:<click model>', found no click model"),
    ],
)
def test_a_misspelt_measure_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Measure.parse(text)


@given(st.sampled_from(OF_RELEVANCE), st.integers(1, 1000))
def test_a_measure_is_read_as_it_is_written(name: str, cutoff: int) -> None:
    assert Measure.parse(str(Measure(name, cutoff))) == Measure(name, cutoff)


@given(ranked_queries(), st.integers(1, 12))
def test_ndcg_equals_scikit_learn_given_exponential_gains(case: tuple[Queries, list[list[int]]], k: int) -> None:
    queries, orders = case
    values = measure_ranking(dataset_of(queries), padded(orders, 15), f"ndcg@{k}")
    for query, order, value in zip(queries, orders, values, strict=True):
        if max(query) == 0:
            assert np.isnan(value)
        elif len(query) > 1:  # scikit-learn refuses a single document
            gains = np.exp2(query) - 1  # its own gain is linear
            scores = np.empty(len(query))
            scores[order] = -np.arange(len(query))
            assert value == pytest.approx(ndcg_score([gains], [scores], k=k))


@given(ranked_queries(), st.integers(1, 12))
def test_dcg_equals_scikit_learn_with_either_gain(case: tuple[Queries, list[list[int]]], k: int) -> None:
    queries, orders = case
    for name, gain in (("dcg", lambda grades: np.exp2(grades) - 1), ("dcg-linear", np.array)):
        values = measure_ranking(dataset_of(queries), padded(orders, 15), f"{name}@{k}", without_relevant="zero")
        for query, order, value in zip(queries, orders, values, strict=True):
            if len(query) > 1:  # scikit-learn refuses a single document
                scores = np.empty(len(query))
                scores[order] = -np.arange(len(query))
                assert value == pytest.approx(dcg_score([gain(query)], [scores], k=k))


def test_linear_gains_are_the_grades_themselves() -> None:
    dataset, ranking = dataset_of([[1, 3, 0]]), ranking_of([[0, 2, 1]])
    assert measure_ranking(dataset, ranking, "dcg-linear@3") == pytest.approx([1 / log2(2) + 3 / log2(4)])
    ideal = 3 / log2(2) + 1 / log2(3)
    assert measure_ranking(dataset, ranking, "ndcg-linear@3") == pytest.approx([(1 / log2(2) + 3 / log2(4)) / ideal])


def test_err_is_the_expected_reciprocal_of_where_the_user_is_satisfied() -> None:
    dataset = dataset_of([[2, 0, 4]], max_grade=4)
    two, four = (2**2 - 1) / 2**4, (2**4 - 1) / 2**4
    expected = two + (1 - two) * (1 / 3) * four
    assert measure_ranking(dataset, ranking_of([[0, 1, 2]]), "err@3") == pytest.approx([expected])
    assert measure_ranking(dataset, ranking_of([[0, 1, 2]]), "err@2") == pytest.approx([two])


def test_err_uses_the_highest_grade_of_the_scale_not_of_the_query() -> None:
    assert measure_ranking(dataset_of([[1]], max_grade=1), ranking_of([[0]]), "err@1") == pytest.approx([1 / 2])
    assert measure_ranking(dataset_of([[1]], max_grade=4), ranking_of([[0]]), "err@1") == pytest.approx([1 / 16])


def test_mrr_precision_and_map_by_hand() -> None:
    dataset, ranking = dataset_of([[0, 1, 0, 3, 2]]), ranking_of([[0, 1, 2, 3]])
    assert measure_ranking(dataset, ranking, "mrr@4") == pytest.approx([1 / 2])
    assert measure_ranking(dataset, ranking, "mrr@1") == pytest.approx([0])
    assert measure_ranking(dataset, ranking, "precision@4") == pytest.approx([2 / 4])
    assert measure_ranking(dataset, ranking, "map@4") == pytest.approx([(1 / 2 + 2 / 4) / 3])
    assert measure_ranking(dataset, ranking, "map@2") == pytest.approx([(1 / 2) / 2])


def test_precision_divides_by_the_cutoff_even_if_no_query_has_so_many_documents() -> None:
    assert measure_ranking(dataset_of([[1, 0]]), ranking_of([[0, 1]]), "precision@10") == pytest.approx([1 / 10])


def test_expected_clicks_are_the_return_of_the_ranking_mdp() -> None:
    dataset, ranking = dataset_of([[1, 0]], max_grade=1), ranking_of([[0, 1]])
    first, second = 1.0, 0.1
    assert measure_ranking(dataset, ranking, "clicks:pbm@2") == pytest.approx([0.68 * first + 0.61 * second])
    assert measure_ranking(dataset, ranking, "clicks:cascade@2") == pytest.approx([first + (1 - first) * second])


def test_expected_clicks_under_an_unknown_model_are_refused() -> None:
    with pytest.raises(InputError, match=r"unknown click model 'pmb' \(did you mean 'pbm'\?\)"):
        Measure.parse("clicks:pmb@10")


def test_a_user_is_satisfied_by_a_click_once_at_most() -> None:
    """Grades 1 and 2 of 2: relevance 1/3 and 1; a satisfied user stops, an unsatisfied one may give up."""
    dataset, ranking = dataset_of([[1, 2]], max_grade=2), ranking_of([[0, 1]])
    first, second = 0.1 + 0.9 / 3, 1.0
    onward = (1 - first) + first * (1 - 0.3)
    satisfied = first * 0.3 + onward * second * 0.9
    assert measure_ranking(dataset, ranking, "satisfaction:sdbn@2") == pytest.approx([satisfied])
    assert measure_ranking(dataset, ranking, "satisfaction:dbn@2") == pytest.approx(
        [first * 0.3 + 0.9 * onward * second * 0.9]
    )


def test_users_who_are_never_satisfied_are_refused_with_the_models_that_have_it() -> None:
    with pytest.raises(
        InputError, match=r"'satisfaction:pbm': users of pbm are never satisfied; choose one of dbn, sdbn"
    ):
        Measure.parse("satisfaction:pbm@10")


def plain_measure(name: str, grades: list[int], all_grades: list[int], k: int) -> float:
    """Position by position, as in the books."""
    shown = (grades + [0] * k)[:k]
    if name == "err":
        total, reached = 0.0, 1.0
        for position, grade in enumerate(shown, start=1):
            satisfied = (2**grade - 1) / 2**4
            total += reached * satisfied / position
            reached *= 1 - satisfied
        return total
    if name == "mrr":
        return next((1 / position for position, grade in enumerate(shown, start=1) if grade > 0), 0.0)
    if name == "precision":
        return sum(grade > 0 for grade in shown) / k
    hits = [sum(g > 0 for g in shown[:i]) / i for i, grade in enumerate(shown, start=1) if grade > 0]
    return sum(hits) / min(k, sum(grade > 0 for grade in all_grades))


@given(ranked_queries(), st.sampled_from(["err", "mrr", "precision", "map"]), st.integers(1, 12))
def test_measures_equal_their_plain_versions(case: tuple[Queries, list[list[int]]], name: str, k: int) -> None:
    queries, orders = case
    values = measure_ranking(dataset_of(queries), padded(orders, 15), f"{name}@{k}")
    for query, order, value in zip(queries, orders, values, strict=True):
        if max(query) > 0:
            assert value == pytest.approx(plain_measure(name, [query[i] for i in order], query, k))


def random_lists() -> tuple[Queries, list[list[int]]]:
    """Queries with a relevant document each, and an order of the documents of each."""
    rng = np.random.default_rng(0)
    queries = [rng.integers(0, 5, rng.integers(2, 16)).tolist() for _ in range(200)]
    queries = [query for query in queries if max(query) > 0]
    return queries, [rng.permutation(len(query)).tolist() for query in queries]


def values_of_peer(peer: ir_measures.Measure, queries: Queries, orders: list[list[int]]) -> list[float]:
    """A value per query by ir-measures."""
    qrels = {str(q): {str(d): grade for d, grade in enumerate(query)} for q, query in enumerate(queries)}
    run = {str(q): {str(d): -float(place) for place, d in enumerate(order)} for q, order in enumerate(orders)}
    found = {one.query_id: one.value for one in ir_measures.iter_calc([peer], qrels, run)}
    return [found[str(q)] for q in range(len(queries))]


def test_measures_equal_those_of_trec_eval() -> None:
    queries, orders = random_lists()
    peers = {
        "ndcg-linear@5": ir_measures.nDCG @ 5,
        "ndcg@5": ir_measures.nDCG(gains={grade: 2**grade - 1 for grade in range(5)}) @ 5,
        "mrr@5": ir_measures.RR @ 5,
        "precision@5": ir_measures.P @ 5,
        "map@15": ir_measures.AP,  # all relevant documents fit, so the divisor is the same
    }
    for name, peer in peers.items():
        values = measure_ranking(dataset_of(queries), padded(orders, 15), name)
        assert values == pytest.approx(values_of_peer(peer, queries, orders)), name


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl program")
def test_err_equals_that_of_gdeval() -> None:
    """TREC's gdeval takes 4 for the highest grade, as here, and writes five decimals."""
    queries, orders = random_lists()
    for k in (1, 5, 10):
        values = measure_ranking(dataset_of(queries, max_grade=4), padded(orders, 15), f"err@{k}")
        assert values == pytest.approx(values_of_peer(ir_measures.ERR @ k, queries, orders), abs=0.6e-5)


@given(ranked_queries(), st.sampled_from(["ndcg", "ndcg-linear", "err", "mrr", "map", "precision"]), st.integers(1, 12))
def test_measures_are_between_0_and_1(case: tuple[Queries, list[list[int]]], name: str, k: int) -> None:
    queries, orders = case
    values = measure_ranking(dataset_of(queries), padded(orders, 15), f"{name}@{k}", without_relevant="one")
    assert ((values >= 0) & (values <= 1 + 1e-12)).all()


@given(some_queries, st.sampled_from(["ndcg", "ndcg-linear", "map", "mrr"]), st.integers(1, 12))
def test_the_ideal_order_gives_1(queries: Queries, name: str, k: int) -> None:
    dataset = dataset_of(queries)
    ideal = rank_by_score(dataset.relevance.astype(np.float32), dataset.candidates.offsets, 15)
    values = measure_ranking(dataset, ideal, f"{name}@{k}", without_relevant="one")
    assert values == pytest.approx(np.ones(len(queries)))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.sampled_from(["dcg", "err"]), st.integers(1, 5))
def test_the_ideal_order_is_the_best_of_all(query: list[int], name: str, k: int) -> None:
    orders = list(itertools.permutations(range(len(query))))
    values = measure_ranking(
        dataset_of([query] * len(orders)), padded([list(o) for o in orders], 5), f"{name}@{k}", without_relevant="zero"
    )
    ideal = sorted(range(len(query)), key=lambda d: -query[d])
    best = measure_ranking(dataset_of([query]), padded([ideal], 5), f"{name}@{k}", without_relevant="zero")
    assert best[0] == pytest.approx(values.max())


@given(ranked_queries(), st.sampled_from(["ndcg", "err"]), st.integers(1, 12), st.data())
def test_swapping_a_better_document_up_never_lowers_a_measure(
    case: tuple[Queries, list[list[int]]], name: str, k: int, data: st.DataObject
) -> None:
    queries, orders = case
    dataset = dataset_of(queries)
    before = measure_ranking(dataset, padded(orders, 15), f"{name}@{k}", without_relevant="zero")
    for query, order in zip(queries, orders, strict=True):
        upper, lower = sorted(data.draw(st.tuples(*[st.integers(0, len(order) - 1)] * 2)))
        if query[order[lower]] > query[order[upper]]:
            order[lower], order[upper] = order[upper], order[lower]
    after = measure_ranking(dataset, padded(orders, 15), f"{name}@{k}", without_relevant="zero")
    assert (after >= before - 1e-12).all()
