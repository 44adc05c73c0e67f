"""A weighted sum of the scores of several rankers."""

from collections.abc import Mapping, Sequence
from reprlib import repr as in_short
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.config import Range, check_arguments
from cuolr.logs.contexts import ContextCurves
from cuolr.policies.policy import POLICIES, ScaledScoringPolicy
from cuolr.types import Doubles, Floats

EXAMINATION = "examination"
EXAMINATION_BY_CONTEXT, EXAMINATION_SCALE = "examination_by_context", "examination_scale"


@POLICIES.register("ensemble")
class EnsemblePolicy(ScaledScoringPolicy):
    """Scores a document by Σ_i w_i · s_i, where s_i is the score of member i.

    Attributes:
        members: The rankers, at least one; all use the same features with the same normalisation.
        weights: [number of members] the weights w.
        logging_policy_members: The indices of the members that model the logging policy of the training log.
        examination: [K, K + 1] the examination estimated from the training log, by position and last click above (see
            `examination.from_clicks`); None = not estimated. It does not affect scores.
        by_context: The same by level of context, if the training log had several.
    """

    def __init__(
        self,
        members: Sequence[ScaledScoringPolicy],
        weights: Sequence[float],
        logging_policy_members: Sequence[int] = (),
        examination: Doubles | None = None,
        by_context: ContextCurves | None = None,
    ) -> None:
        if not members or len(members) != len(weights):
            raise ValueError(
                f"expected one or more members, each with a weight, found {len(members)} and {len(weights)}"
            )
        self.members = tuple(members)
        self.weights = tuple(float(weight) for weight in weights)
        self.logging_policy_members = tuple(int(number) for number in logging_policy_members)
        self.examination = examination
        self.by_context = by_context
        self.normaliser = self.members[0].normaliser

    @property
    def n_features(self) -> int:
        """The number of features of the members."""
        return self.members[0].n_features

    @property
    def is_logging_policy(self) -> bool:
        """Whether only members that model the logging policy have a weight."""
        weighted = {i for i, weight in enumerate(self.weights) if weight}
        return bool(weighted) and weighted <= set(self.logging_policy_members)

    def score_scaled(self, features: Floats) -> Floats:
        """[n] the weighted sum of scores; members with weight 0 are not evaluated."""
        scores = np.zeros(len(features), np.float32)
        for member, weight in zip(self.members, self.weights, strict=True):
            if weight:
                with np.errstate(over="ignore", invalid="ignore"):  # infinite scores are ranked, too
                    scores += np.float32(weight) * member.score_scaled(features)
        return scores

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of each member, prefixed with its index; and the examination, if it was estimated."""
        arrays = {f"{i}.{name}": array for i, m in enumerate(self.members) for name, array in m.arrays().items()}
        if self.examination is not None:
            arrays[EXAMINATION] = self.examination
        if self.by_context is not None:
            arrays |= {EXAMINATION_BY_CONTEXT: self.by_context.tables, EXAMINATION_SCALE: self.by_context.scale}
        return arrays

    def settings(self) -> dict[str, Any]:
        """The weights, and the kind and settings of each member."""
        members = [{"policy": POLICIES.name_of(type(m)), "settings": m.settings()} for m in self.members]
        return {
            "weights": list(self.weights),
            "members": members,
            "logging_policy_members": list(self.logging_policy_members),
            **({} if self.by_context is None else {"context_levels": list(self.by_context.levels)}),
        }

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild a policy from its `arrays` and `settings`."""
        members = []
        by_member = _by_prefix(arrays)
        for i, saved in enumerate(settings["members"]):
            member = POLICIES.get(saved["policy"]).from_parts(by_member.get(str(i), {}), saved["settings"])
            if not isinstance(member, ScaledScoringPolicy):
                raise ValueError(f"member {i + 1}: expected a policy that scores documents, found {saved['policy']}")
            members.append(member)
        if len({(member.n_features, member.normaliser.n_indicators) for member in members}) > 1:
            raise ValueError("members: expected all to have the same features")
        by_context = None
        if "context_levels" in settings:
            levels = tuple(map(str, settings["context_levels"]))
            tables, scale = arrays[EXAMINATION_BY_CONTEXT], arrays[EXAMINATION_SCALE]
            _check_examination(EXAMINATION_BY_CONTEXT, tables, leading=(len(levels),))
            if scale.shape != (len(levels),) or scale.dtype != np.float64 or not np.isfinite(scale).all():
                raise ValueError(f"{EXAMINATION_SCALE}: expected a finite number for each of {len(levels)} levels")
            by_context = ContextCurves(levels, tables, scale)
        examination = arrays.get(EXAMINATION)
        if examination is not None:
            _check_examination(EXAMINATION, examination)
        check_arguments(**{f"weight_{i + 1}": (weight, Range()) for i, weight in enumerate(settings["weights"])})
        of_log = settings["logging_policy_members"]
        if not set(of_log) <= set(range(len(members))):
            raise ValueError(f"logging_policy_members: expected numbers of members, found {in_short(of_log)}")
        return cls(members, settings["weights"], of_log, examination, by_context)


def _by_prefix(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """The arrays by what stands before the first dot of their names."""
    by_prefix: dict[str, dict[str, npt.NDArray[Any]]] = {}
    for name, array in arrays.items():
        prefix, _, rest = name.partition(".")
        by_prefix.setdefault(prefix, {})[rest] = array
    return by_prefix


def _check_examination(name: str, table: npt.NDArray[Any], leading: tuple[int, ...] = ()) -> None:
    """Raise if it is no table of examination [K, K + 1], or several of them."""
    k = table.shape[-2] if table.ndim > 1 else 0
    if not k or table.shape != (*leading, k, k + 1) or table.dtype != np.float64:
        raise ValueError(f"{name}: expected numbers by position and last click, found {list(table.shape)}")
    if np.isinf(table).any() or (table < 0).any():
        raise ValueError(f"{name}: expected finite numbers from 0 up")
