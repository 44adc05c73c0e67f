import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import cuolr
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.judgment_files import format_of, topics_file, write_judgments
from cuolr.off_policy.judgments import Scale, judge, judgments, ratings, score_interval
from cuolr.types import Candidates, Doubles
from tests.small_log import small_log
from tests.test_architecture import WALLED_ROOMS, is_in, modules_reached, project_sources

Z = 1.959963984540054


def log_of(rankings: list[list[int]], clicks: list[list[int]], documents: int = 2) -> ClickLog:
    """Sessions of one query."""
    ids = np.array([f"d{i}" for i in range(documents)])
    candidates = Candidates(np.zeros((documents, 1), np.float32), np.array([0, documents]), np.array(["q"]), ids)
    ranking = np.array(rankings, np.int16)
    return ClickLog(
        candidates,
        np.zeros(len(ranking), np.int32),
        ranking,
        np.array(clicks, np.uint8),
        np.ones(len(ranking), np.int64),
    )


def by_position(*probabilities: float) -> ExaminationModel:
    """PBM: examination does not depend on clicks above."""
    k = len(probabilities)
    return ExaminationModel(np.repeat(np.array(probabilities)[:, None], k + 1, axis=1))


def test_a_rate_is_clicks_over_expected_examinations() -> None:
    # d0: at 1, 1, 2 with clicks 1, 0, 1. d1: at 2, 2, 1 with clicks 0, 1, 0. Position 2 is examined by half.
    log = log_of([[0, 1], [0, 1], [1, 0]], [[1, 0], [0, 1], [0, 1]])
    table = judgments(log, min_examinations=0, examination=by_position(1, 0.5))
    assert table.select("query_id", "doc_id", "impressions", "clicks", "examinations").rows() == [
        ("q", "d0", 3, 2.0, 1 + 1 + 0.5),
        ("q", "d1", 3, 1.0, 0.5 + 0.5 + 1),
    ]
    assert table["rate"].to_list() == pytest.approx([2 / 2.5, 1 / 2])
    expected = score_interval(np.array([2.0, 1.0]), np.array([2.5, 2.0]), np.array([2.25, 1.5]))
    assert table["low"].to_list() == pytest.approx(expected[0].tolist())
    assert table["high"].to_list() == pytest.approx(expected[1].tolist())


def test_a_rate_of_rewards_is_their_sum_over_expected_examinations() -> None:
    log = log_of([[0, 1], [0, 1], [1, 0]], [[1, 0], [0, 1], [0, 1]])
    reward = np.array([[4, 0], [0, 2], [0, 0]], np.float32)
    found = judge(replace(log, reward=reward), min_examinations=0, examination=by_position(1, 0.5))
    assert found.outcome == "reward"
    assert found.table.select("doc_id", "clicks", "reward", "rate").rows() == [
        ("d0", 2.0, 4.0, 4 / 2.5),
        ("d1", 1.0, 2.0, 2 / 2),
    ]
    # A click has the mean reward 2, and information (4 + 2)² / (3 · (16 + 4)).
    unit, known = 2.0, 36 / 60
    counted, examined = np.array([4, 2]) / unit * known, np.array([2.5, 2.0]) * known
    low, high = score_interval(counted, examined, np.array([2.25, 1.5]) * known**2)
    assert found.table["low"].to_list() == pytest.approx((unit * low).tolist())
    assert found.table["high"].to_list() == pytest.approx((unit * high).tolist())


def test_the_interval_of_a_high_rate_holds_the_rate() -> None:
    """A document whose every examination brings ten times the mean reward."""
    clicks = [[1, int(i % 10 == 0)] for i in range(40)]
    log = log_of([[0, 1]] * 40, clicks)
    reward = (log.clicks * np.array([10.0, 0.1])).astype(np.float32)
    table = judgments(replace(log, reward=reward), examination=by_position(1, 1))
    assert (table["low"] < table["rate"]).all()
    assert (table["rate"] < table["high"]).all()


def test_intervals_of_reward_rates_hold_the_true_rate() -> None:
    """95 of 100, where rewards differ widely: one click in five is a purchase, worth 1 to 20."""
    rng = np.random.default_rng(0)
    documents, sessions = 200, 400
    ids = np.array([f"d{i}" for i in range(documents)])
    candidates = Candidates(np.zeros((documents, 1), np.float32), np.arange(documents + 1), ids, ids)
    query = np.repeat(np.arange(documents, dtype=np.int32), sessions)
    rate = rng.uniform(0.1, 0.5, documents)
    clicks = rng.random(len(query)) < rate[query]
    reward = clicks * (rng.random(len(query)) < 0.2) * rng.uniform(1, 20, len(query))
    log = ClickLog(
        candidates,
        query,
        np.zeros((len(query), 1), np.int16),
        clicks[:, None].astype(np.uint8),
        np.ones(len(query), np.int64),
        reward=reward[:, None].astype(np.float32),
    )
    table = judgments(log, examination=by_position(1.0)).sort(pl.col("doc_id").str.slice(1).cast(pl.Int64))
    true = rate * 0.2 * 10.5
    inside = (table["low"].to_numpy() < true) & (true < table["high"].to_numpy())
    assert 0.9 <= inside.mean() <= 0.985


def test_an_aggregated_log_has_the_same_rates() -> None:
    log = log_of([[0, 1], [0, 1], [1, 0]], [[1, 0], [0, 1], [0, 1]])
    examination = by_position(1, 0.5)
    raw = judgments(log, min_examinations=0, examination=examination)
    assert judgments(aggregate(log), min_examinations=0, examination=examination).equals(raw)


def test_documents_that_are_never_shown_or_seldom_examined_are_left_out() -> None:
    log = log_of([[0, 1]] * 10, [[1, 0]] * 10, documents=3)
    found = judge(log, min_examinations=10, examination=by_position(1, 0.5))
    assert found.table["doc_id"].to_list() == ["d0"]
    assert found.left_out == 1
    assert judge(log, min_examinations=5, examination=by_position(1, 0.5)).table["doc_id"].to_list() == ["d0", "d1"]
    # Without an estimate of examination at its position a document cannot be judged.
    assert judge(log, min_examinations=0, examination=by_position(1, np.nan)).left_out == 1


def test_with_full_examination_the_interval_is_wilsons() -> None:
    clicks, shown = np.array([0.0, 3.0, 10.0]), np.array([10.0, 10.0, 10.0])
    low, high = score_interval(clicks, shown, shown)
    share = clicks / shown
    centre = (share + Z**2 / (2 * shown)) / (1 + Z**2 / shown)
    width = Z / (1 + Z**2 / shown) * np.sqrt(share * (1 - share) / shown + Z**2 / (4 * shown**2))
    np.testing.assert_allclose(low, centre - width, atol=1e-12)
    np.testing.assert_allclose(high, centre + width)


def test_with_rare_examination_the_interval_is_that_of_a_poisson_count() -> None:
    # (C − λ)² = z²·λ for the mean λ = α·E.
    low, high = score_interval(np.array([4.0]), np.array([2.0]), np.array([0.0]))
    root = np.sqrt(Z**2 * (4 + Z**2 / 4))
    assert (low[0], high[0]) == pytest.approx(((4 + Z**2 / 2 - root) / 2, (4 + Z**2 / 2 + root) / 2))


@pytest.mark.parametrize("share_of_squares", [0.0, 0.3, 1.0])
def test_the_ends_solve_the_equation_of_the_score_test(share_of_squares: float) -> None:
    clicks, exposure = np.array([1.0, 5.0, 20.0]), np.array([30.0, 30.0, 30.0])
    squares = share_of_squares * exposure
    for end in score_interval(clicks, exposure, squares):
        np.testing.assert_allclose((clicks - end * exposure) ** 2, Z**2 * (end * exposure - end**2 * squares))


THETA = np.array([1.0, 0.6, 0.35, 0.2, 0.1])


def simulated(attractiveness: Doubles, sessions: int, seed: int) -> ClickLog:
    """PBM on lists in random order; a row of attractiveness per query."""
    rng = np.random.default_rng(seed)
    queries, documents = attractiveness.shape
    query = rng.integers(0, queries, sessions).astype(np.int32)
    ranking = rng.permuted(np.tile(np.arange(documents), (sessions, 1)), axis=1)[:, : len(THETA)]
    clicks = rng.random(ranking.shape) < THETA * attractiveness[query[:, None], ranking]
    ids = np.array([str(i) for i in range(queries)])
    offsets = np.arange(queries + 1) * documents
    candidates = Candidates(np.zeros((queries * documents, 1), np.float32), offsets, ids)
    return ClickLog(
        candidates, query, ranking.astype(np.int16), clicks.astype(np.uint8), np.ones(sessions, dtype=np.int64)
    )


def coverage(attractiveness: Doubles, log: ClickLog, examination: ExaminationModel | None) -> float:
    table = judgments(log, min_examinations=5, examination=examination)
    truth = attractiveness[table["query_id"].cast(pl.Int64).to_numpy(), table["doc_id"].cast(pl.Int64).to_numpy() - 1]
    return float(((table["low"].to_numpy() <= truth) & (truth <= table["high"].to_numpy())).mean())


@pytest.mark.parametrize("highest", [0.2, 0.9])
def test_intervals_contain_the_true_attractiveness_about_95_times_in_100(highest: float) -> None:
    attractiveness = np.random.default_rng(1).uniform(0.05, highest, (400, 6))
    log = simulated(attractiveness, 40_000, seed=2)
    # 2,400 intervals: the standard error of the share is 0.0044.
    assert coverage(attractiveness, log, by_position(*THETA)) == pytest.approx(0.95, abs=0.015)


def test_intervals_hold_with_examination_estimated_from_the_log() -> None:
    attractiveness = np.random.default_rng(3).uniform(0.05, 0.9, (400, 6))
    log = simulated(attractiveness, 40_000, seed=4)
    assert coverage(attractiveness, log, None) == pytest.approx(0.95, abs=0.02)
    # Click rates that ignore position bias miss nearly always.
    assert coverage(attractiveness, log, ExaminationModel.full(len(THETA))) < 0.2
    assert judge(log).identifiable


def test_a_rating_compares_a_rate_with_the_top_rate() -> None:
    rate = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0])
    assert ratings(rate, 1.0, "0-1").tolist() == [0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.0]
    assert ratings(rate, 1.0, "0-3").tolist() == [0, 0, 1, 2, 3, 3, 3]
    assert ratings(rate, 0.5, "0-4").tolist() == [0, 1, 2, 4, 4, 4, 4]


@given(
    rate=arrays(np.float64, st.integers(1, 20), elements=st.floats(0, 3)),
    top=st.floats(1e-3, 2),
    scale=st.sampled_from(["0-1", "0-3", "0-4"]),
)
def test_ratings_are_on_their_scale_and_never_fall_as_the_rate_grows(rate: Doubles, top: float, scale: Scale) -> None:
    found = ratings(np.sort(rate), top, scale)
    assert (np.diff(found) >= 0).all()
    assert ((found >= 0) & (found <= float(scale[-1]))).all()
    if scale != "0-1":
        assert (found == found.round()).all()


def test_the_top_rate_is_that_of_the_best_tenth_of_the_clicked_documents() -> None:
    log = small_log(400)
    found = judge(log, min_examinations=1, scale="0-3")
    clicked = found.table.filter(pl.col("clicks") > 0)["rate"].to_numpy()
    assert found.top_rate == pytest.approx(np.quantile(clicked, 0.9))
    assert set(found.table["rating"].to_list()) <= {0.0, 1.0, 2.0, 3.0}
    by_rate = found.table.sort("rate")["rating"].to_numpy()
    assert (np.diff(by_rate) >= 0).all()


def test_without_clicks_all_ratings_are_0() -> None:
    log = log_of([[0, 1]] * 3, [[0, 0]] * 3)
    table = judgments(log, min_examinations=0, examination=by_position(1, 1))
    assert table["rating"].to_list() == [0.0, 0.0]
    assert table["high"].min() > 0  # type: ignore[operator]


def test_the_best_documents_of_a_query_come_first() -> None:
    table = cuolr.judgments(small_log(400), min_examinations=1)
    for _, rows in table.group_by("query_id"):
        assert rows["rate"].is_sorted(descending=True)
    assert table["query_id"].is_sorted()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_examinations": -1}, "min_examinations: expected "),
        ({"scale": "0-5"}, "scale: expected 0-1, 0-3, 0-4, found '0-5'"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        judgments(small_log(), **arguments)


def test_variants_of_a_document_are_judged_as_one() -> None:
    rng = np.random.default_rng(1)
    rows = [
        (f"q{session % 3}", session, position, f"d{document}", int(rng.random() < 0.4), float(rng.integers(3)))
        for session in range(90)
        for position, document in enumerate(rng.permutation(4), start=1)
    ]
    names = ["query_id", "session_id", "position", "doc_id", "click", "price"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    by_variant = cuolr.import_log(table, cuolr.FeatureTables(impression=("price",)))
    assert by_variant.candidates.n_documents > 12
    known = ExaminationModel.fit(by_variant)
    without = cuolr.import_log(table.drop("price"))
    expected = judge(without, examination=known, min_examinations=0)
    found = judge(by_variant, examination=known, min_examinations=0)
    assert found.left_out == expected.left_out == 0
    assert found.table["doc_id"].to_list() == expected.table["doc_id"].to_list()
    for column in ("impressions", "clicks", "examinations", "rate", "low", "high", "rating"):
        np.testing.assert_allclose(found.table[column], expected.table[column], rtol=1e-12)


def test_no_learner_can_reach_judgments() -> None:
    sources = project_sources()
    walled = [module for module in sources if is_in(module, WALLED_ROOMS)]
    assert "cuolr.learners.factored.learner" in walled
    for module in walled:
        assert not [name for name in modules_reached(module, sources) if "judgment" in name]


TABLE = pl.DataFrame(
    {
        "query_id": ["red shoes", "red shoes", 'say "hi", ok'],
        "doc_id": ["a", "b", "c"],
        "rate": [0.5, 0.1, 0.2],
        "rating": [3.0, 0.0, 1.0],
    }
)


def test_the_workbench_gets_the_request_that_imports_judgments(tmp_path: Path) -> None:
    write_judgments(tmp_path / "new" / "week 1.json", TABLE, "workbench")
    assert json.loads((tmp_path / "new" / "week 1.json").read_text()) == {
        "name": "week 1",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {"query": "red shoes", "ratings": [{"docId": "a", "rating": 3.0}, {"docId": "b", "rating": 0.0}]},
            {"query": 'say "hi", ok', "ratings": [{"docId": "c", "rating": 1.0}]},
        ],
    }


def test_quepid_gets_query_docid_and_rating(tmp_path: Path) -> None:
    path = tmp_path / "quepid.csv"
    write_judgments(path, TABLE, "quepid")
    assert path.read_text() == 'query,docid,rating\nred shoes,a,3\nred shoes,b,0\n"say ""hi"", ok",c,1\n'
    write_judgments(path, TABLE.with_columns(rating=pl.col("rate")), "quepid")
    assert path.read_text().splitlines()[1] == "red shoes,a,0.5"


def test_qrels_of_queries_with_spaces_number_them(tmp_path: Path) -> None:
    path = tmp_path / "j.qrels"
    write_judgments(path, TABLE, "qrels")
    assert path.read_text() == "1 0 a 3\n1 0 b 0\n2 0 c 1\n"
    assert topics_file(path).read_text() == '1\tred shoes\n2\tsay "hi", ok\n'


def test_qrels_of_plain_queries_name_them(tmp_path: Path) -> None:
    path = tmp_path / "j.qrels"
    write_judgments(path, TABLE.with_columns(query_id=pl.lit("shoes")), "qrels")
    assert path.read_text() == "shoes 0 a 3\nshoes 0 b 0\nshoes 0 c 1\n"
    assert not topics_file(path).exists()


def test_what_qrels_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="qrels hold whole numbers; choose a scale of grades"):
        write_judgments(tmp_path / "j.qrels", TABLE.with_columns(rating=pl.col("rate")), "qrels")
    with pytest.raises(InputError, match="cannot hold spaces, found doc_id 'a b'"):
        write_judgments(tmp_path / "j.qrels", TABLE.with_columns(doc_id=pl.lit("a b")), "qrels")
    assert list(tmp_path.iterdir()) == []


def test_a_table_has_all_columns(tmp_path: Path) -> None:
    write_judgments(tmp_path / "j.parquet", TABLE, "table")
    write_judgments(tmp_path / "j.csv", TABLE, "table")
    assert pl.read_parquet(tmp_path / "j.parquet").equals(TABLE)
    assert pl.read_csv(tmp_path / "j.csv").equals(TABLE)


def test_the_name_of_a_file_says_its_format() -> None:
    names = ("a.parquet", "a.CSV", "a.json", "a.qrels", "a.trec")
    assert [format_of(Path(name)) for name in names] == ["table", "table", "workbench", "qrels", "qrels"]
    with pytest.raises(InputError, match=r"expected a name that ends in \.parquet"):
        format_of(Path("a.txt"))
