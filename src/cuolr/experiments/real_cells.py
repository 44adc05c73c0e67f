"""One method on a real log: train it on the lists that were not random, and measure it by those that were."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from cuolr.evaluation.evaluate import evaluate
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.experiments.real_data import RealData, by_position
from cuolr.experiments.spec import Cell, Experiment
from cuolr.logs.changed_candidates import MANY_QUERIES
from cuolr.logs.counts import ClickCounts
from cuolr.logs.importing.seen_documents import has_features
from cuolr.off_policy.assess import assess
from cuolr.off_policy.random_lists import matched_values, order_by_policy
from cuolr.policies.policy import RankingPolicy, rank_by_score
from cuolr.training.fit import FitRequest, fit
from cuolr.training.hold_out import held_out_queries, queries_shown
from cuolr.training.log_form import TrainingLog
from cuolr.training.training_config import TrainingConfig
from cuolr.types import Candidates, Doubles, Ints

NDCG = "ndcg@10"
# Stored with each result; another means another way to measure.
FORMAT = "cuolr-real-1"
# Whether a file must have a hash: those from before there was one have none.
FORMATS = {FORMAT: False}


@dataclass(frozen=True)
class RealResult:
    """The measurements of a method.

    Attributes:
        values: By judged query, the sums over its lists in random order of `clicks` and, if the log has rewards,
            `reward`; by labelled query, `ndcg@10`, NaN = it does not count.
        trained_on: Indices of the judged queries whose other lists the method was trained on.
        seconds: Training time.
        predicted: The gain that off-policy evaluation predicts from the training log; empty for the logging policy.
        examination: By position, relative to position 1, on the lists in random order; empty if the method estimates
            none.
        settings: Of the learner and of the training.
    """

    values: Mapping[str, Doubles]
    trained_on: tuple[int, ...] = ()
    seconds: float = 0.0
    predicted: Mapping[str, Any] = field(default_factory=dict)
    examination: tuple[float | None, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        values = {
            name: [None if np.isnan(value) else round(float(value), 6) for value in of_queries]
            for name, of_queries in self.values.items()
        }
        return {"format": FORMAT, **asdict(self), "values": values}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "RealResult":
        """The inverse of `as_dict`; raises `ValueError` for other content."""
        if content.get("format") != FORMAT:
            raise ValueError(f"expected format {FORMAT}")
        fields = {name: value for name, value in content.items() if name != "format"}
        values = {name: np.array(of_queries, np.float64) for name, of_queries in content["values"].items()}
        lists = {name: tuple(content[name]) for name in ("trained_on", "examination")}
        return cls(**{**fields, **lists, "values": values})


def measure_method(experiment: Experiment, cell: Cell, data: RealData) -> RealResult:
    """Train a method and measure it.

    Args:
        experiment: Describes the method.
        cell: The method and the seed.
        data: The log.
    """
    config = experiment.config_of(cell)
    if config is None:
        return _measure_logging(data)
    start = time.perf_counter()
    propensities = data.propensities() if config.learner_class.takes_propensities else None
    result = fit(FitRequest(TrainingLog.of(data.train, propensities), config))
    if result.best is None or result.outcome == "interrupted":
        raise KeyboardInterrupt
    seconds = time.perf_counter() - start
    policy = result.best.policy
    predicted = assess(policy, data.train)
    order = None if data.judge is None else order_by_policy(policy, data.judge)
    return RealResult(
        _values(data, policy, order),
        _trained_on(data, config.training),
        round(seconds, 3),
        {name: predicted.as_dict()[name] for name in ("gain", "interval", "recommendation", "identifiable")},
        _examination(data, policy),
        config.as_dict(),
    )


def _measure_logging(data: RealData) -> RealResult:
    return RealResult(_values(data, data.logging_policy(), None if data.judge is None else data.logging_order()))


def _values(data: RealData, policy: RankingPolicy | None, order: Ints | None) -> dict[str, Doubles]:
    values: dict[str, Doubles] = {}
    if data.judge is not None:
        assert order is not None
        _, query = np.unique(data.judge.query, return_inverse=True)
        measured = {"clicks": data.judge.clicks, "reward": data.judge.reward}
        for name, of_lists in measured.items():
            if of_lists is not None:
                sums = matched_values(order, data.judge, of_lists)
                values[name] = np.bincount(query, weights=sums).astype(np.float64)
    if data.labels is not None and policy is not None:
        values[NDCG] = evaluate(policy, data.labels, [NDCG]).per_query[NDCG]
    return values


def _trained_on(data: RealData, training: TrainingConfig) -> tuple[int, ...]:
    if data.judge is None:
        return ()
    queries = np.unique(data.train.query)
    if len(queries_shown(data.train)) >= MANY_QUERIES:  # as `fit` decides
        queries = np.setdiff1d(queries, held_out_queries(data.train, training.held_out, training.seed))
    seen = np.isin(np.unique(data.judge.query), queries)
    return tuple(np.flatnonzero(seen).tolist())


def _examination(data: RealData, policy: RankingPolicy) -> tuple[float | None, ...]:
    table = getattr(policy, "examination", None)
    if table is None or data.judge is None:
        return ()
    found = by_position(ExaminationModel(np.asarray(table, np.float64)), ClickCounts.of(data.judge))
    return tuple(None if np.isnan(value) else float(value) for value in found)


CORRECTED = "examination-corrected click rate"


@dataclass(frozen=True)
class _ByScore:
    """Ranks the candidates that it has scores of."""

    scores: Doubles

    def rank(self, candidates: Candidates, k: int) -> Ints:
        return rank_by_score(self.scores, candidates.offsets, k)


def click_rates(data: RealData) -> dict[str, RealResult]:
    """NDCG of ranking labelled documents by their click rates: as they are (naive), and corrected for examination."""
    if data.labels is None or has_features(data.train.candidates):
        return {}
    counts = data.counts
    exposure = {
        "naive": counts.by_position(counts.impressions),
        CORRECTED: data.examination.expected_examinations(counts),
    }
    rows = _rows(data.labels.candidates, data.train.candidates)
    found = {}
    for name, of_lists in exposure.items():
        ranker = _ByScore(corrected_rates(counts, of_lists)[rows])
        found[name] = RealResult({NDCG: evaluate(ranker, data.labels, [NDCG]).per_query[NDCG]})
    return found


def corrected_rates(counts: ClickCounts, expected_examinations: Doubles) -> Doubles:
    """[n_documents] α̂ = (rewards + prior) / (expected examinations + 1), the prior being the query's mean α̂."""
    query = counts.lists.candidates.query_of_document
    n_queries = counts.lists.candidates.n_queries
    rewards = counts.by_document(counts.by_position(counts.rewards))
    exposure = counts.by_document(expected_examinations)
    of_query = (np.bincount(query, weights=values, minlength=n_queries) for values in (rewards, exposure))
    rewards_of_query, exposure_of_query = of_query
    mean = rewards_of_query / np.maximum(exposure_of_query, 1e-9)
    rates: Doubles = (rewards + mean[query]) / (exposure + 1)
    return rates


def _rows(labelled: Candidates, candidates: Candidates) -> Ints:
    """The row of each labelled document among the documents of the log."""

    def ids(of: Candidates) -> pl.DataFrame:
        assert of.document_ids is not None
        return pl.DataFrame({"query_id": of.query_ids[of.query_of_document], "doc_id": of.document_ids})

    rows = ids(candidates).with_columns(row=np.arange(candidates.n_documents))
    joined = ids(labelled).join(rows, on=["query_id", "doc_id"], how="left", maintain_order="left")
    return joined["row"].to_numpy().astype(np.int64)
