from dataclasses import replace

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.logs.contexts import MAX_LEVELS, ContextCurves, context_levels
from tests.small_log import small_log

LOG = small_log(rows=4)


def test_a_log_without_context_has_one_level() -> None:
    levels, level = context_levels(LOG)
    assert levels == ("",)
    assert level.tolist() == [0, 0, 0, 0]


def test_the_values_of_one_column_are_levels() -> None:
    levels, level = context_levels(replace(LOG, context={"device": np.array(["b", "a", "b", "c"])}))
    assert levels == ("a", "b", "c")
    assert level.tolist() == [1, 0, 1, 2]


def test_combinations_that_occur_are_levels() -> None:
    context = {"layout": np.array(["grid", "list", "grid", "grid"]), "columns": np.array([1, 1, 2, 1])}
    levels, level = context_levels(replace(LOG, context=context))
    assert levels == ("columns=1,layout=grid", "columns=1,layout=list", "columns=2,layout=grid")
    assert level.tolist() == [0, 1, 2, 0]


def test_too_many_levels_are_refused() -> None:
    log = small_log(rows=MAX_LEVELS + 1)
    with pytest.raises(InputError, match=r"expected at most 20 different values.* found 21 \(user has 21\)"):
        context_levels(replace(log, context={"user": np.arange(MAX_LEVELS + 1)}))
    levels, _ = context_levels(replace(log, context={"user": np.arange(MAX_LEVELS + 1) % MAX_LEVELS}))
    assert len(levels) == MAX_LEVELS


def test_a_level_that_is_unknown_has_the_curve_of_all() -> None:
    tables = np.stack([np.full((2, 3), value) for value in (1.0, 0.5)])
    curves = ContextCurves(("a", "b"), tables, np.array([2.0, 0.5]))
    of_all = np.full((2, 3), 0.8)
    relative = curves.relative(("b", "c", "a"), of_all)
    np.testing.assert_array_equal(relative[:, 0, 0], [0.5 * 0.5, 0.8, 2 * 1.0])
