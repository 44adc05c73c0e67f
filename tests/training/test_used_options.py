import dataclasses

import pytest

from cuolr.errors import InputError
from cuolr.training.base_learner import LEARNERS
from cuolr.training.used_options import USES, check_used


@pytest.mark.parametrize("option", USES)
def test_an_option_is_refused_by_just_those_learners_that_it_does_not_name(option: str) -> None:
    with pytest.raises(InputError) as refused:
        check_used("factored", option, "it")
    (problem,) = refused.value.problems
    named = problem.rpartition(": ")[2].split(", ")
    assert named
    for learner in LEARNERS.names():
        if learner in named:
            check_used(learner, option, "it")
        else:
            with pytest.raises(InputError, match=f"it: {learner} does not use it"):
                check_used(learner, option, "it")


def test_learners_with_an_encoder_use_it() -> None:
    assert "encoder" in {field.name for field in dataclasses.fields(LEARNERS.get("cql").Config)}
    check_used("cql", "encoder", "--encoder attention")
    with pytest.raises(
        InputError, match=r"--encoder attention: ipw does not use it; .* choose another --learner: .*cql"
    ):
        check_used("ipw", "encoder", "--encoder attention", "--learner")


def test_an_unknown_learner_is_named() -> None:
    with pytest.raises(InputError, match="unknown learner 'cqll'"):
        check_used("cqll", "encoder", "it")
