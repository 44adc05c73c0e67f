"""Which options a learner uses. An option that would change nothing is refused."""

import dataclasses
from collections.abc import Callable, Mapping

from cuolr.errors import InputError
from cuolr.training.base_learner import LEARNERS, Learner


def has_setting(learner: type[Learner], name: str) -> bool:
    """Whether the config of a learner has a setting."""
    return name in {field.name for field in dataclasses.fields(learner.Config)}


# By the name of the option: whether a learner uses it.
USES: Mapping[str, Callable[[type[Learner]], bool]] = {
    "encoder": lambda learner: has_setting(learner, "encoder"),
    "precision": lambda learner: has_setting(learner, "precision"),
    "batch_size": lambda learner: learner.data_parallel,
    "propensities": lambda learner: learner.takes_propensities,
}


def check_used(learner: str, option: str, written: str, choose: str = "learner") -> None:
    """Raise `InputError` if a learner does not use an option, and name the learners that do.

    Args:
        learner: Name of the learner.
        option: A name in `USES`.
        written: The option as the user gave it, such as `--batch-size 8`.
        choose: Name of the user's option for the learner.
    """
    uses = USES[option]
    if not uses(LEARNERS.get(learner)):
        others = ", ".join(other for other in LEARNERS.names() if uses(LEARNERS.get(other)))
        raise InputError(f"{written}: {learner} does not use it; remove it, or choose another {choose}: {others}")
