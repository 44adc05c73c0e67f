"""Several rankers at once: a weighted sum of their scores."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.policies.policy import POLICIES, ScaledScoringPolicy
from cuolr.types import Floats


@POLICIES.register("blend")
class BlendPolicy(ScaledScoringPolicy):
    """Scores a document by Σ_i w_i · s_i, s_i the score by ranker i.

    Attributes:
        members: The rankers, at least one; all take the same documents, scaled the same way.
        weights: [number of members] w.
        imitations: The numbers of the members that imitate the ranking in a log.
    """

    def __init__(
        self, members: Sequence[ScaledScoringPolicy], weights: Sequence[float], imitations: Sequence[int] = ()
    ) -> None:
        if not members or len(members) != len(weights):
            raise ValueError(f"expected a weight for each of one or more members, found {len(members)}, {len(weights)}")
        self.members = tuple(members)
        self.weights = tuple(float(weight) for weight in weights)
        self.imitations = tuple(int(number) for number in imitations)
        self.normaliser = self.members[0].normaliser

    @property
    def n_features(self) -> int:
        """Of the members."""
        return self.members[0].n_features

    def score_scaled(self, features: Floats) -> Floats:
        """[n] the weighted sum; a member of weight 0 is not asked."""
        scores = np.zeros(len(features), np.float32)
        for member, weight in zip(self.members, self.weights, strict=True):
            if weight:
                scores += np.float32(weight) * member.score_scaled(features)
        return scores

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Of each member, its number before each name."""
        return {f"{i}.{name}": array for i, m in enumerate(self.members) for name, array in m.arrays().items()}

    def settings(self) -> dict[str, Any]:
        """The weights, and kind and settings of each member."""
        members = [{"policy": POLICIES.name_of(type(m)), "settings": m.settings()} for m in self.members]
        return {"weights": list(self.weights), "members": members, "imitations": list(self.imitations)}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy that `arrays` and `settings` were taken from."""
        members = []
        for i, saved in enumerate(settings["members"]):
            own = {name.removeprefix(f"{i}."): array for name, array in arrays.items() if name.startswith(f"{i}.")}
            member = POLICIES.get(saved["policy"]).from_parts(own, saved["settings"])
            if not isinstance(member, ScaledScoringPolicy):
                raise ValueError(f"member {i + 1}: expected a policy that scores documents, found {saved['policy']}")
            members.append(member)
        return cls(members, settings["weights"], settings["imitations"])
