from math import log2
from pathlib import Path

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import evaluate, score_on
from cuolr.evaluation.trec import write_qrels, write_run
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.types import Candidates, RankingDataset


def by_first_feature() -> LinearPolicy:
    return LinearPolicy(np.ones(1, np.float32), Normaliser("none", np.empty(0), np.empty(0)))


def three_queries() -> RankingDataset:
    """The first is ranked 1, 0, 2 by grade; the second has nothing relevant; the third is ranked perfectly."""
    features = np.array([[3], [2], [1], [2], [1], [5], [4]], np.float32)
    candidates = Candidates(features, np.array([0, 3, 5, 7]), np.array(["a", "b", "c"]))
    return RankingDataset(candidates, np.array([1, 0, 2, 0, 0, 1, 0], np.int8), 2)


FIRST = (1 / log2(2) + 3 / log2(4)) / (3 / log2(2) + 1 / log2(3))


def test_every_query_has_a_value_and_those_without_a_relevant_document_have_none() -> None:
    evaluation = evaluate(by_first_feature(), three_queries(), ["ndcg@10", "dcg@1"])
    np.testing.assert_allclose(evaluation.per_query["ndcg@10"], [FIRST, np.nan, 1])
    np.testing.assert_allclose(evaluation.per_query["dcg@1"], [1, np.nan, 1])
    assert evaluation.query_ids.tolist() == ["a", "b", "c"]
    assert evaluation.n_without_relevant == 1
    assert evaluation.means() == pytest.approx({"ndcg@10": (FIRST + 1) / 2, "dcg@1": 1.0})


def test_queries_without_a_relevant_document_can_count() -> None:
    for without_relevant, value in (("zero", 0), ("one", 1)):
        evaluation = evaluate(by_first_feature(), three_queries(), ["ndcg@10"], without_relevant)  # type: ignore[arg-type]
        assert evaluation.means()["ndcg@10"] == pytest.approx((FIRST + value + 1) / 3)


def test_documents_with_equal_scores_are_in_input_order() -> None:
    features = np.array([[1], [2], [1], [2]], np.float32)
    candidates = Candidates(features, np.array([0, 4]), np.array(["a"]))
    evaluation = evaluate(by_first_feature(), RankingDataset(candidates, np.array([0, 0, 0, 1], np.int8), 1), ["mrr@4"])
    assert evaluation.ranking.tolist() == [[1, 3, 0, 2]]
    assert evaluation.means() == {"mrr@4": 1 / 2}


def test_the_score_is_the_mean_of_one_measure() -> None:
    assert score_on(three_queries())(by_first_feature()) == pytest.approx((FIRST + 1) / 2)
    assert score_on(three_queries(), "ndcg@1")(by_first_feature()) == pytest.approx((1 / 3 + 1) / 2)


def test_a_measure_has_one_name_however_it_is_written() -> None:
    evaluation = evaluate(by_first_feature(), three_queries(), ["ndcg@010", "ndcg@10", "ndcg@1"])
    assert list(evaluation.per_query) == ["ndcg@10", "ndcg@1"]
    assert score_on(three_queries(), "ndcg@010")(by_first_feature()) == evaluation.means()["ndcg@10"]


def test_lists_are_not_longer_than_the_longest_query() -> None:
    evaluation = evaluate(by_first_feature(), three_queries(), [f"ndcg@{10**12}"])
    assert evaluation.ranking.shape[1] == three_queries().candidates.sizes.max()


def test_a_bad_measure_is_noticed_before_any_training() -> None:
    with pytest.raises(InputError, match="unknown measure 'ndgc'"):
        score_on(three_queries(), "ndgc@10")


def two_queries(*ids: str) -> RankingDataset:
    """Query a has documents of grade 2, 0, 1, query b one of grade 0."""
    names = np.array(ids) if ids else None
    candidates = Candidates(np.zeros((4, 1), np.float32), np.array([0, 3, 4]), np.array(["a", "b"]), names)
    return RankingDataset(candidates, np.array([2, 0, 1, 0], np.int8), 2)


def test_qrels_have_a_line_for_every_document(tmp_path: Path) -> None:
    write_qrels(tmp_path / "new" / "qrels", two_queries("x", "y", "z", "x"))
    assert (tmp_path / "new" / "qrels").read_text().splitlines() == ["a 0 x 2", "a 0 y 0", "a 0 z 1", "b 0 x 0"]


def test_a_run_has_scores_that_fall_with_the_position(tmp_path: Path) -> None:
    write_run(tmp_path / "run", two_queries("x", "y", "z", "x").candidates, np.array([[2, 0], [0, -1]]))
    lines = ["a Q0 z 1 2 cuolr", "a Q0 x 2 1 cuolr", "b Q0 x 1 2 cuolr"]
    assert (tmp_path / "run").read_text().splitlines() == lines


def test_a_document_without_an_id_has_the_same_name_in_both_files(tmp_path: Path) -> None:
    for dataset, names in (
        (two_queries(), ["1", "2", "3", "1"]),
        (two_queries("x", "", "z", ""), ["x", "2", "z", "1"]),
    ):
        assert dataset.candidates.document_names.tolist() == names
        write_qrels(tmp_path / "qrels", dataset)
        write_run(tmp_path / "run", dataset.candidates, np.array([[0, 1, 2], [0, -1, -1]]))
        for file in ("qrels", "run"):
            assert [line.split()[2] for line in (tmp_path / file).read_text().splitlines()] == names


def test_names_that_a_trec_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    for ids, problem in (
        (("x y", "y", "z", "x"), "spaces, found doc_id 'x y'"),
        (("2", "", "z", "x"), "found '2' of 'a'"),
    ):
        with pytest.raises(InputError, match=problem):
            write_qrels(tmp_path / "qrels", two_queries(*ids))
    assert not list(tmp_path.iterdir())
