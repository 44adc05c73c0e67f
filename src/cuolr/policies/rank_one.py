"""Ranks the documents of one query, given as dictionaries, a data frame or an array: ids and scores, best first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.policies.named_documents import NamedDocuments
from cuolr.policies.policy import RankingPolicy, ScaledScoringPolicy, ScoringPolicy
from cuolr.types import Candidates, Floats, Ints

# Dictionaries of features by name, a data frame of polars or pandas, or an array [n, F].
Documents: TypeAlias = Sequence[Mapping[str, Any]] | npt.NDArray[Any] | Any


@dataclass(frozen=True)
class RankedDocuments:
    """The documents of one query, best first.

    Attributes:
        ids: [k] the id of each document.
        scores: [k] the score of each document, higher = better; None if the policy gives no scores, because it places
            one document after the other.
        index: [k] where each document was in the input, from 0.
    """

    ids: list[str]
    scores: Floats | None
    index: Ints


def rank_one(
    policy: RankingPolicy, documents: Documents, ids: Sequence[Any] | None = None, k: int | None = None
) -> RankedDocuments:
    """Rank the documents of one query. The score of a document does not depend on the others.

    A value that is missing (None, NaN, or a name that only some dictionaries have) is treated as in training.

    Args:
        policy: The model.
        documents: Dictionaries of features by name, and `doc_id`; a data frame with the same columns; or an array
            [n, F] with the features in the order of training, which is fastest. A model without names, such as one
            trained on LETOR files, names features by their number, from "1" on.
        ids: Of the documents; None = `doc_id` or, without it, their numbers from 1.
        k: Length of the ranking; None = all documents.

    Raises:
        InputError: If features are missing, unknown or infinite.
    """
    if k is not None:
        check_arguments(k=(k, Range(1)))
    found = _features_of(policy, documents)
    names = _checked_ids(found.ids if ids is None else ids, len(found.features))
    if not len(names):
        no_scores = np.empty(0, np.float32) if isinstance(policy, ScoringPolicy) else None
        return RankedDocuments([], no_scores, np.empty(0, np.int64))
    if np.isinf(found.features).any():
        row, column = np.argwhere(np.isinf(found.features))[0].tolist()
        raise InputError(f"document '{names[row]}', feature {column + 1}: expected a finite number in float32")
    if isinstance(policy, ScoringPolicy):
        return _by_score(_scores(policy, found.features), names, k)
    ranking = policy.rank(_one_query(found.features), len(names) if k is None else min(k, len(names)))[0]
    return RankedDocuments([names[row] for row in ranking.tolist()], None, ranking)


def _features_of(policy: RankingPolicy, documents: Documents) -> NamedDocuments:
    """The features as the policy takes them, and the ids if the documents have some."""
    if isinstance(documents, np.ndarray):
        return NamedDocuments(_from_array(documents, policy.n_features))
    if isinstance(documents, str | Path):
        raise InputError(
            "documents: expected dictionaries, a data frame or an array, found a path; read_candidates reads files"
        )
    if isinstance(documents, Sequence):
        if all(isinstance(document, Mapping) for document in documents):
            return NamedDocuments.of_dictionaries(policy, documents)
        raise InputError("documents: expected dictionaries of features by name; give numbers as an array [n, features]")
    return NamedDocuments.of_frame(policy, documents)


def _from_array(documents: npt.NDArray[Any], n_features: int | None) -> Floats:
    if documents.ndim != 2 or n_features not in (None, documents.shape[1]):
        expected = "[documents, features]" if n_features is None else f"[documents, {n_features}], as in training"
        raise InputError(f"documents: expected an array of the shape {expected}, found {list(documents.shape)}")
    if documents.dtype == np.float32:
        return documents
    if documents.dtype.kind not in "fiub":
        raise InputError(f"documents: expected an array of numbers, found {documents.dtype}")
    with np.errstate(over="ignore"):  # a number that float32 cannot hold becomes infinite, which is refused
        return documents.astype(np.float32)


def _checked_ids(ids: Sequence[Any] | None, number: int) -> list[str]:
    if ids is None:
        return [str(place) for place in range(1, number + 1)]
    if len(ids) != number:
        raise InputError(f"ids: expected one for each of {number} documents, found {len(ids)}")
    return [str(name) for name in ids]


def _one_query(features: Floats) -> Candidates:
    return Candidates(features, np.array([0, len(features)]), np.array(["query"]))


def _scores(policy: ScoringPolicy, features: Floats) -> Floats:
    """[n] the scores, the same bits as `policy.score` gives."""
    if isinstance(policy, ScaledScoringPolicy):
        return policy.score_raw(features)
    return policy.score(_one_query(features))


def _by_score(scores: Floats, names: Sequence[str], k: int | None) -> RankedDocuments:
    if np.isnan(scores).any():
        unscored = names[int(np.flatnonzero(np.isnan(scores))[0])]
        raise InputError(f"document '{unscored}' has no score: the model has no rule for its missing features")
    order = np.argsort(-scores, kind="stable")[:k]
    return RankedDocuments([names[row] for row in order.tolist()], scores[order], order)
