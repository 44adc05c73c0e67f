"""The fingerprint of a cell: a hash of everything that affects its result, except the code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuolr.clicks.click_model import click_model_table
from cuolr.config import from_dict, to_dict
from cuolr.experiments.datasets import Splits, digest, digest_of_ids
from cuolr.experiments.results import name_of
from cuolr.experiments.spec import Cell, Experiment


@dataclass(frozen=True)
class DataDigest:
    """Hashes of a fold of the data.

    Attributes:
        content: See `digest`.
        query_ids: See `digest_of_ids`.
    """

    content: str
    query_ids: str

    @classmethod
    def of(cls, splits: Splits) -> "DataDigest":
        """The hashes of the splits of a fold."""
        return cls(digest(splits), digest_of_ids(splits))


# By fold; 0 for data without folds.
Digests = Mapping[int, DataDigest]


def digests_to_dict(digests: Digests) -> dict[str, Any]:
    """The digests in JSON types."""
    return {str(fold): to_dict(of_fold) for fold, of_fold in digests.items()}


def digests_from(table: Mapping[str, Any]) -> dict[int, DataDigest]:
    """The inverse of `digests_to_dict`."""
    return {int(fold): from_dict(DataDigest, of_fold) for fold, of_fold in table.items()}


def fingerprinted_name(
    experiment: Experiment, cell: Cell, digests: Digests, settings: Mapping[str, Any] | None = None
) -> str:
    """The name of a cell's result.

    Args:
        experiment: The experiment.
        cell: One of its cells.
        digests: Digests of the data.
        settings: Settings of the learner and its training; None = as the experiment configures them.
    """
    return name_of(cell, decisive(experiment, cell, digests[cell.fold], settings))


def decisive(
    experiment: Experiment, cell: Cell, data: DataDigest, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Everything that affects the result of a cell, except the code; see `fingerprinted_name`."""
    method = experiment.method_named(cell.method)
    values: dict[str, Any] = {
        "data": data.content,
        "fold": cell.fold,
        "seed": cell.seed,
        "method": method.learner,
        "settings": method.settings if method.is_reference else {},
        "measures": experiment.measures,
        "split": experiment.split,
    }
    if cell.logging:
        logging = experiment.logging_named(cell.logging)
        values["logging"] = to_dict(logging)
        if logging.name == "random":
            values["ids"] = data.query_ids
    if method.learner == "skyline":
        values["k"] = experiment.k
    if method.is_reference:
        return values
    if settings is None:
        config = experiment.config_of(cell)
        assert config is not None
        settings = config.as_dict()
    values |= {
        "config": settings,
        "validation": experiment.validation,
        "click_model": click_model_table(experiment.click_model_named(cell.click_model)),
        "sessions_per_query": cell.sessions_per_query,
        "k": experiment.k,
    }
    if method.true_examination:
        values["true_examination"] = True
    if experiment.takes_propensities(cell):
        estimated_under = experiment.click_model_named(method.propensities or cell.click_model)
        values["propensities"] = [click_model_table(estimated_under), experiment.randomised_lists]
    return values
