"""The registry of learners, apart from their interface, which loads torch: names are listed without it."""

from typing import TYPE_CHECKING

from cuolr.registry import Registry

if TYPE_CHECKING:
    from cuolr.training.base_learner import Learner

LEARNERS: Registry[type["Learner"]] = Registry(
    "learner", package="cuolr.learners", entry_points="cuolr.learners", base="Learner", variable="LEARNERS"
)
