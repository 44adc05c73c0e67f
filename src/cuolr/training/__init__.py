"""From a click log to a trained policy."""

from typing import TYPE_CHECKING

from cuolr.registry import Registry

if TYPE_CHECKING:
    from cuolr.training.base_learner import Learner

# Here, apart from the interface of learners, which load torch: names are listed without loading any.
LEARNERS: Registry[type["Learner"]] = Registry(
    "learner", package="cuolr.learners", entry_points="cuolr.learners", base="Learner", variable="LEARNERS"
)
