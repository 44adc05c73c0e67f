"""The interface of exporters: a ranking policy in the format of an engine or a library."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from cuolr.export.pointwise_model import PointwiseModel
from cuolr.types import Doubles, Floats

# [n, F] raw features, NaN = missing → [n] scores.
Scores: TypeAlias = Callable[[Floats], Doubles]


@dataclass(frozen=True)
class ExportedModel:
    """A model in the format of a target.

    Attributes:
        form: What the target calls it, such as `model/xgboost+json`.
        content: The model file.
        score: The scores of documents as the target computes them, by reading `content`.
        suffixes: How the name of the model file may end.
        companions: Further files by what replaces the suffix of the model file, such as `.features.json`.
        warnings: What the user should know about versions of the engine.
    """

    form: str
    content: bytes
    score: Scores
    suffixes: Sequence[str]
    companions: Mapping[str, bytes] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class Exporter(ABC):
    """Writes models in the format of one target.

    Attributes:
        student: The kind of model that `cuolr distil` should make of a model that the target cannot hold.
    """

    student: ClassVar[str] = "trees"

    @abstractmethod
    def export(self, model: PointwiseModel, name: str) -> ExportedModel:
        """The model in the target's format.

        Args:
            model: The model to export; raises `CannotHold` if the target cannot represent it.
            name: The name of the model in the engine.
        """
