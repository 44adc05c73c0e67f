"""A weighted sum of the scores of several rankers."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

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
        for i, saved in enumerate(settings["members"]):
            own = {name.removeprefix(f"{i}."): array for name, array in arrays.items() if name.startswith(f"{i}.")}
            member = POLICIES.get(saved["policy"]).from_parts(own, saved["settings"])
            if not isinstance(member, ScaledScoringPolicy):
                raise ValueError(f"member {i + 1}: expected a policy that scores documents, found {saved['policy']}")
            members.append(member)
        by_context = None
        if "context_levels" in settings:
            tables, scale = arrays[EXAMINATION_BY_CONTEXT], arrays[EXAMINATION_SCALE]
            by_context = ContextCurves(tuple(settings["context_levels"]), tables, scale)
        of_log = settings["logging_policy_members"]
        return cls(members, settings["weights"], of_log, arrays.get(EXAMINATION), by_context)
