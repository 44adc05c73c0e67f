"""Batches, and which queries or sessions are held out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_meta import fingerprint
from cuolr.training.batches import Batches, SessionBatch, WeightedLists
from cuolr.training.fit import FitRequest, fit
from cuolr.training.hold_out import held_out_queries, held_out_sessions, split_by_query, with_held_out_sessions
from cuolr.training.log_form import TrainingLog
from cuolr.training.presets.configure import configure
from tests.small_log import counted_log, small_log


def make(log: ClickLog, batch_size: int = 7, seed: int = 1, unshown: int = 0, kind: str = "min-max") -> Batches:
    return Batches(WeightedLists.of(log), Normaliser.fit(kind, log.candidates), batch_size, seed, unshown)


def assert_same(left: SessionBatch, right: SessionBatch) -> None:
    for name, value in vars(left).items():
        if value is not None:
            torch.testing.assert_close(getattr(right, name), value, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["min-max", "query-min-max", "none"])
def test_a_batch_holds_the_scaled_documents_and_the_clicks_of_its_rows(kind: str) -> None:
    log = small_log()
    scaled = Normaliser.fit(kind, log.candidates).apply(log.candidates).features
    (batch,) = make(log, batch_size=len(log), kind=kind).in_order()
    for row in range(len(log)):
        for position, slot in enumerate(log.ranking[row]):
            document = log.candidates.offsets[log.query[row]] + slot
            expected = np.zeros(4, np.float32) if slot < 0 else scaled[document]
            np.testing.assert_array_equal(batch.features[row, position], expected)
            assert batch.where[row, position] == (slot >= 0)
            assert batch.rewards[row, position] == log.clicks[row, position]
    assert batch.unshown is None


@settings(max_examples=25)
@given(rows=st.integers(1, 30), batch_size=st.integers(1, 40), seed=st.integers(0, 1_000))
def test_every_row_comes_once_in_an_epoch(rows: int, batch_size: int, seed: int) -> None:
    log = counted_log(rows)
    batches = make(log, batch_size, seed)
    steps = 2 * rows  # a whole number of epochs, whatever the batch size
    stream = torch.cat([batches.at(step).weight for step in range(steps)]).reshape(-1, rows)
    weights = torch.from_numpy(log.count / log.count.mean()).float().sort().values
    torch.testing.assert_close(stream.sort(dim=1).values, weights.expand_as(stream))


def test_a_batch_depends_on_the_seed_and_the_step_alone() -> None:
    log = small_log()
    batches, others = make(log, unshown=2), make(log, unshown=2)
    for step in (0, 3, 17):
        batches.at(step)
    assert_same(others.at(17), batches.at(17))
    assert not torch.equal(make(log, seed=2).at(17).features, batches.at(17).features)


@settings(max_examples=25)
@given(batch_size=st.integers(1, 40), cut=st.integers(0, 40), step=st.integers(0, 9), unshown=st.integers(0, 3))
def test_parts_of_a_batch_make_up_the_whole(batch_size: int, cut: int, step: int, unshown: int) -> None:
    batches = make(small_log(), batch_size, unshown=unshown)
    whole, parts = batches.at(step), [batches.at(step, part) for part in (slice(cut), slice(cut, None))]
    for name, value in vars(whole).items():
        if value is not None:
            torch.testing.assert_close(torch.cat([getattr(part, name) for part in parts]), value, rtol=0, atol=0)


def test_epochs_have_different_orders() -> None:
    batches = make(counted_log(rows=40), batch_size=40)
    assert not torch.equal(batches.at(0).weight, batches.at(1).weight)


def test_the_weights_of_an_aggregated_log_are_its_counts_over_their_mean() -> None:
    log = aggregate(small_log(rows=200, k=1))
    weights = torch.cat([batch.weight for batch in make(log).in_order()])
    torch.testing.assert_close(weights, torch.from_numpy(log.count / log.count.mean()).float())
    assert (log.count > 1).any()


def test_aggregated_rows_weigh_like_their_sessions() -> None:
    raw = small_log(rows=200, k=1)
    sums = []
    for log in (raw, aggregate(raw)):
        batches = list(make(log).in_order())
        clicked = sum((b.weight[:, None, None] * b.rewards[..., None] * b.features).sum(dim=(0, 1)) for b in batches)
        sums.append(clicked / len(log))
    torch.testing.assert_close(*sums)


@pytest.mark.parametrize("unshown", [1, 2, 100])
def test_unshown_documents_are_of_the_query_each_once_and_not_in_the_list(unshown: int) -> None:
    log = small_log(k=4)
    batches = make(log, batch_size=len(log), unshown=unshown, kind="none")
    (batch,) = batches.in_order()
    assert batch.unshown is not None
    assert batch.unshown_where is not None
    sizes = log.candidates.sizes[log.query]
    left = sizes - (log.ranking >= 0).sum(axis=1)
    np.testing.assert_array_equal(batch.unshown_where.sum(dim=1), np.minimum(left, unshown))
    for row in range(len(log)):
        start, end = log.candidates.offsets[log.query[row] :][:2]
        of_query = {tuple(document) for document in log.candidates.features[start:end].tolist()}
        shown = [tuple(document) for document in batch.features[row][batch.where[row]].tolist()]
        drawn = [tuple(document) for document in batch.unshown[row][batch.unshown_where[row]].tolist()]
        assert len(set(shown + drawn)) == len(shown + drawn)
        assert set(shown + drawn) <= of_query
        assert (batch.unshown[row][~batch.unshown_where[row]] == 0).all()


def test_other_unshown_documents_are_drawn_the_next_time() -> None:
    log = small_log(rows=1, k=2)
    batches = make(log, batch_size=1, unshown=1, kind="none")
    drawn = {tuple(unshown.flatten().tolist()) for s in range(60) if (unshown := batches.at(s).unshown) is not None}
    assert len(drawn) == log.candidates.sizes[log.query[0]] - 2


def test_only_documents_that_can_occur_are_kept_in_memory() -> None:
    log = small_log(rows=3, k=2)
    shown = {(log.query[row], slot) for row in range(3) for slot in log.ranking[row] if slot >= 0}
    assert len(make(log)._scaled[1]) == len(shown) + 1
    assert len(make(log, unshown=1)._scaled[1]) == log.candidates.sizes[np.unique(log.query)].sum() + 1


def test_a_log_that_is_mapped_from_disk_gives_the_same_batches(tmp_path: Path) -> None:
    log = small_log()
    mapped = {}
    for name in ("query", "ranking", "clicks"):
        np.save(tmp_path / f"{name}.npy", getattr(log, name))
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    assert_same(make(replace(log, **mapped), unshown=1).at(5), make(log, unshown=1).at(5))


def test_batches_of_some_rows_are_batches_of_a_log_of_these_rows() -> None:
    log = small_log()
    rows = np.array([3, 8, 9, 20, 31])
    normaliser = Normaliser.fit("min-max", log.candidates)
    some = Batches(WeightedLists.of(log), normaliser, 2, seed=4, rows=rows)
    alone = Batches(WeightedLists.of(log.select(rows)), normaliser, 2, seed=4)
    for step in range(6):
        assert_same(some.at(step), alone.at(step))


def test_the_fingerprint_tells_logs_apart() -> None:
    log = small_log()
    clicks = log.clicks.copy()
    clicks[0, 0] ^= 1
    features = log.candidates.features.copy()
    features[-1, -1] += 1
    others = [
        replace(log, clicks=clicks),
        replace(log, candidates=replace(log.candidates, features=features)),
        log.select(slice(0, 10)),
        small_log(seed=2),
    ]
    assert len({fingerprint(log), *map(fingerprint, others)}) == 5
    assert fingerprint(log) == fingerprint(small_log())


def test_all_bad_numbers_are_named_together() -> None:
    log = small_log()
    with pytest.raises(InputError) as error:
        Batches(WeightedLists.of(log), Normaliser.fit("none", log.candidates), 0, -1, -2, rows=np.array([], np.int64))
    assert [problem.split(":")[0] for problem in error.value.problems[:3]] == ["batch_size", "seed", "unshown"]
    assert "at least one list" in error.value.problems[3]


ONE_QUERY = small_log(rows=200, queries=1)


def test_the_split_keeps_the_rows_of_a_query_together() -> None:
    log = small_log(rows=300, queries=20)
    train, held_out = split_by_query(log, held_out_queries(log, 0.1, seed=3))
    assert sorted([*train, *held_out]) == list(range(300))
    assert len(np.unique(log.query[held_out])) == 2
    assert not set(log.query[train]) & set(log.query[held_out])
    others = {tuple(split_by_query(log, held_out_queries(log, 0.1, seed=seed))[1]) for seed in range(5)}
    assert len(others) > 1


def test_the_split_leaves_at_least_a_query_on_each_side() -> None:
    log = small_log(queries=2)
    for share in (0.01, 0.99):
        train, held_out = split_by_query(log, held_out_queries(log, share, seed=0))
        assert len(train)
        assert len(held_out)
    with pytest.raises(InputError, match="log: expected at least 2 queries with shown documents"):
        split_by_query(small_log(queries=1), held_out_queries(small_log(queries=1), 0.1, seed=0))
    with pytest.raises(InputError, match=r"above 0 and below 1, found 1\.5"):
        split_by_query(log, held_out_queries(log, 1.5, seed=0))


def test_a_share_of_the_sessions_of_few_queries_is_held_out() -> None:
    log = small_log(rows=200, queries=3)
    rows = held_out_sessions(log, 0.1, seed=1)
    assert len(rows) == round(0.1 * log.where.any(axis=1).sum())
    assert log.where[rows].any(axis=1).all()
    grouped, queries = with_held_out_sessions(log, 0.1, seed=1)
    _, held_out = split_by_query(grouped, queries)
    np.testing.assert_array_equal(held_out, rows)
    np.testing.assert_array_equal(grouped.query % 3, log.query)
    np.testing.assert_array_equal(np.unique(grouped.query // 3), np.arange(10))


def test_at_least_a_session_is_on_each_side() -> None:
    for share in (0.001, 0.999):
        assert 0 < len(held_out_sessions(ONE_QUERY, share, seed=1)) < 200
    with pytest.raises(InputError, match="at least 2 sessions with shown documents, found 1"):
        held_out_sessions(ONE_QUERY.select(np.array([0])), 0.1, seed=1)
    with pytest.raises(InputError, match="fewer than 10 queries needs the clicks of each session"):
        held_out_sessions(aggregate(ONE_QUERY), 0.1, seed=1)


@pytest.mark.parametrize(("queries", "held_out"), [(9, "held_out_sessions"), (10, "held_out_queries")])
def test_sessions_are_held_out_below_ten_queries(queries: int, held_out: str) -> None:
    log = small_log(rows=300, queries=queries)
    config = configure("naive", settings={"training.steps": 1, "learner.hidden": [4]})
    result = fit(FitRequest(TrainingLog.of(log), config))
    assert result.provenance["settings"]["validated_by"] == {held_out: 0.1}
