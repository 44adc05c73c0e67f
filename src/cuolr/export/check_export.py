"""Whether an exported model gives the scores of its policy."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuolr.errors import InputError
from cuolr.export.exporter import Scores
from cuolr.export.pointwise_model import PointwiseModel
from cuolr.export.probe_documents import PROBES_PER_SPLIT, FeatureRange, random_documents, threshold_documents
from cuolr.export.raw_trees import folded
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.progress import Stages, unseen_stages
from cuolr.types import Doubles, Floats

RANDOM_DOCUMENTS = 10_000
# Random documents of which those next to a threshold are made.
BASE_DOCUMENTS = 64
# Scores this close count as equal, relative to the highest absolute score if that is above 1: float32 holds 7 digits.
ROUNDING = 1e-6


@dataclass(frozen=True)
class ExportCheck:
    """How close the scores of an exported model are to those of its policy.

    Attributes:
        random_documents: Number of random documents.
        threshold_documents: Number of documents at, above and below a threshold, or with its feature missing.
        max_difference: Highest absolute difference of two scores.
        max_score: Highest absolute score of the policy.
        reordered_pairs: Whether two documents, whose scores differ by more than rounding, have another order.
    """

    random_documents: int
    threshold_documents: int
    max_difference: float
    max_score: float
    reordered_pairs: bool

    def require(self) -> None:
        """Raise if the exported model ranks differently, or if the policy has no scores."""
        if not np.isfinite(self.max_score):
            raise InputError("not written: the model gives scores that are not finite numbers; train it again")
        if self.reordered_pairs or not np.isfinite(self.max_difference):
            raise InputError(
                f"not written: it ranks documents in another order than the model, its scores differ by "
                f"up to {self.max_difference:.3g}; use --to onnx, which computes in double precision"
            )


def check_export(
    model: PointwiseModel,
    score: Scores,
    seed: int = 0,
    number: int = RANDOM_DOCUMENTS,
    stages: Stages = unseen_stages,
) -> ExportCheck:
    """Compare the scores of an exported model with those of its policy.

    Args:
        model: The policy.
        score: The exported model.
        seed: Seed of the random documents.
        number: Number of random documents.
        stages: Receives the progress.
    """
    advance = stages(
        "comparing scores", number + PROBES_PER_SPLIT * sum(len(policy.trees.feature) for policy in _grown(model))
    )
    expected, found = [], []
    for documents in _probes(model, number, np.random.default_rng(seed)):
        expected.append(model.score(documents))
        found.append(score(documents))
        advance(len(documents))
    return compare_scores(np.concatenate(expected), np.concatenate(found), number)


def compare_scores(expected: Doubles, found: Doubles, n_random: int) -> ExportCheck:
    """Compare two scores [n] of each document, the first `n_random` of which are random ones."""
    largest = float(np.abs(expected).max(initial=0))
    return ExportCheck(
        random_documents=n_random,
        threshold_documents=len(expected) - n_random,
        max_difference=float(np.abs(expected - found).max(initial=0)),
        max_score=largest,
        reordered_pairs=reorders(expected, found, ROUNDING * max(1.0, largest)),
    )


def reorders(expected: Doubles, found: Doubles, tolerance: float) -> bool:
    """Whether `found` puts a document at or above another whose expected score is higher by more than `tolerance`.

    >>> reorders(np.array([1.0, 2.0, 3.0]), np.array([0.0, 5.0, 4.0]), 1e-6)
    True
    >>> reorders(np.array([1.0, 2.0, 2.0 + 1e-7]), np.array([0.0, 5.0, 4.0]), 1e-6)
    False
    """
    order = np.argsort(-expected, kind="stable")
    expected, found = expected[order], found[order]
    lowest_above = np.concatenate([[np.inf], np.minimum.accumulate(found)])
    clearly_above = np.searchsorted(-expected, -(expected + tolerance), side="left")
    return bool((lowest_above[clearly_above] <= found).any())


def _probes(model: PointwiseModel, number: int, rng: np.random.Generator) -> Iterator[Floats]:
    grown = [folded(policy) for policy in _grown(model)]
    # Without a rule for missing values, scores other than those of trees would be NaN.
    with_missing = model.normaliser.missing is not None or model.kinds == {"trees"}
    values = FeatureRange.of(model.normaliser, model.n_features, grown)
    yield random_documents(values, number, rng, with_missing)
    for trees in grown:
        base = random_documents(values, BASE_DOCUMENTS, rng, with_missing=False)
        for documents in threshold_documents(trees, base):
            yield documents if with_missing else documents[~np.isnan(documents).any(axis=1)]


def _grown(model: PointwiseModel) -> list[TreesPolicy]:
    return [member for member in model.members if isinstance(member, TreesPolicy)]
