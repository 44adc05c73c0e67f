from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_options import MISSING, ImportOptions, reward_weights
from cuolr.logs.importing.import_report import ImportReport
from cuolr.logs.importing.table import read_log_table
from tests.data.small_data import candidates_of
from tests.logs.importing.test_table import WRITERS

CANDIDATES = candidates_of(3)  # d0, d1, d2 of q0
TABLE: dict[str, list[Any]] = {
    "query_id": ["q0"] * 5,
    "session_id": ["s1", "s1", "s1", "s2", "s2"],
    "position": [1, 2, 3, 1, 2],
    "doc_id": ["d0", "d1", "d2", "d1", "d0"],
    "click": [1, 0, 1, 0, 1],
    "cart": [0, 0, 1, 0, 2],
    "bought": [False, False, True, False, False],
    "device": ["phone", "phone", "phone", None, None],
}


def read(options: ImportOptions, **columns: list[Any]) -> tuple[ClickLog, ImportReport]:
    return read_log_table(pl.DataFrame({**TABLE, **columns}), CANDIDATES, options)


def reward_of(log: ClickLog) -> list[list[float]]:
    assert log.reward is not None
    rewards: list[list[float]] = log.reward.tolist()
    return rewards


def test_a_reward_is_a_weighted_sum_of_columns() -> None:
    log, report = read(ImportOptions(reward="click=1,cart=3, bought=10", strict=True))
    assert reward_of(log) == [[1, 0, 1 + 3 + 10], [0, 1 + 2 * 3, 0]]
    assert report.is_clean
    assert log.rewards is log.reward
    assert log.outcome == "reward"


def test_weights_may_be_a_mapping_and_columns_have_other_names() -> None:
    table = pl.DataFrame(TABLE).rename({"click": "clicked"})
    options = ImportOptions(columns={"click": "clicked"}, reward={"click": 0.5, "cart": 2})
    log, _ = read_log_table(table, CANDIDATES, options)
    assert reward_of(log) == [[0.5, 0, 0.5 + 2], [0, 0.5 + 2 * 2, 0]]


@pytest.mark.parametrize("name", WRITERS)
def test_one_column_is_a_reward_and_nothing_is_0(name: str, tmp_path: Path) -> None:
    table = pl.DataFrame(TABLE).with_columns(revenue=pl.Series([None, None, 12.5, None, 3.0]))
    WRITERS[name](table, tmp_path / name)
    log, _ = read_log_table(tmp_path / name, CANDIDATES, ImportOptions(reward="revenue", strict=True))
    assert reward_of(log) == [[0, 0, 12.5], [0, 3, 0]]


def test_a_log_without_a_reward_has_its_clicks_as_rewards() -> None:
    log, _ = read(ImportOptions())
    assert log.reward is None
    assert log.rewards is log.clicks
    assert log.outcome == "clicks"


def test_a_reward_without_a_click_is_a_click() -> None:
    log, report = read(ImportOptions(reward="bought=10"), click=[1, 0, 0, 0, 1])
    assert log.clicks.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert reward_of(log) == [[0, 0, 10], [0, 0, 0]]
    (found,) = report.repaired
    assert (found.reason, found.amounts.sessions) == ("reward without a click, taken as clicked", 1)
    assert found.examples == (
        "the table: row 3: a reward without a click: expected a click where the reward is above 0, found the reward "
        "'10.0'",
    )
    assert report.read.clicks == report.kept.clicks == 3


def test_a_count_of_clicks_is_a_click_and_can_be_the_reward() -> None:
    log, report = read(ImportOptions(reward="click=2"), click=[5, 0, 1, 0, 300])
    assert log.clicks.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert reward_of(log) == [[10, 0, 2], [0, 600, 0]]
    (found,) = report.repaired
    assert (found.reason, found.amounts.sessions) == ("click count above 1, taken as a click", 2)


def test_a_negative_reward_is_0() -> None:
    log, report = read(ImportOptions(reward="cart=1,returned=-2"), returned=[1, 0, 0, 0, 1])
    assert reward_of(log) == [[0, 0, 1], [0, 0, 0]]  # −2, 1 and 2 − 2
    assert [found.reason for found in report.repaired] == ["negative reward, taken as 0"]


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ({"click": [1, 0, 0, 0, 1]}, "row 3: a reward without a click: expected a click where the reward is above 0"),
        (
            {"click": [3, 0, 1, 0, 1]},
            "row 1: click: expected 0 or 1, found '3'; to count clicks, use them as the reward",
        ),
        ({"cart": [0, 0, -4, 0, 2]}, "row 3: reward: expected a number from 0 up, found '-3.0'"),
        ({"cart": ["0", "0", "many", "", "2"]}, "row 3: reward: expected a finite number, found null"),
        ({"device": ["phone", "tablet", "phone", None, None]}, "session 's1': expected one value of device, found"),
    ],
)
def test_every_problem_is_an_error_if_strict(columns: dict[str, list[Any]], line: str) -> None:
    options = ImportOptions(reward="click=0,cart=1,bought=1", context=["device"], strict=True)
    with pytest.raises(InputError, match=line) as error:
        read(options, **columns)
    assert len(error.value.problems) == 1


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("click=one", "expected a number after '=', such as purchase=10, found 'click=one'"),
        ("", "expected columns with weights, such as click=1,purchase=10, or a column, found ''"),
        ("click=1,,cart=2", "expected columns with weights"),
        ("click=inf", "found the weight inf of 'click'"),
        ({"click": "1"}, "found the weight '1' of 'click'"),
        ({}, "expected columns with weights"),
    ],
)
def test_weights_are_checked(reward: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ImportOptions(reward=reward)


def test_columns_that_are_missing_are_named() -> None:
    with pytest.raises(InputError, match=r"column 'carts' of the reward is missing \(did you mean 'cart'\?\)"):
        read(ImportOptions(reward="carts=1"))
    with pytest.raises(InputError, match="column 'layout' of the context is missing; found: query_id"):
        read(ImportOptions(context=["layout"]))
    with pytest.raises(InputError, match="found both"):
        ImportOptions(reward="cart=1", columns={"reward": "cart"})
    with pytest.raises(InputError, match="column 'day': expected numbers, found Date"):
        read(
            ImportOptions(reward="day"),
            day=pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 5), eager=True).to_list(),
        )


def test_context_is_a_column_of_sessions() -> None:
    log, report = read(ImportOptions(context=["device"], strict=True))
    assert {name: values.tolist() for name, values in log.context.items()} == {"device": ["phone", MISSING]}
    assert report.is_clean


def test_the_first_value_of_a_context_is_kept() -> None:
    log, report = read(ImportOptions(context=["device"]), device=["phone", "tablet", None, "desk", "desk"])
    assert log.context["device"].tolist() == ["phone", "desk"]
    (found,) = report.repaired
    assert (found.reason, found.amounts.sessions) == ("context that changes, the first value is kept", 1)
    assert found.examples == (
        "the table: row 1: session 's1': expected one value of device, found '(missing)', 'phone', 'tablet'",
    )


def test_a_context_of_many_values_is_refused() -> None:
    n = 21
    table = {
        "query_id": ["q0"] * n,
        "session_id": range(n),
        "position": [1] * n,
        "doc_id": ["d0"] * n,
        "click": [0] * n,
    }
    frame = pl.DataFrame({**table, "user": range(n), "half": np.arange(n) % 2})
    read_log_table(frame, CANDIDATES, ImportOptions(context=["half"]))
    with pytest.raises(InputError, match=r"expected at most 20 different values.* found 21 \(user has 21\)"):
        read_log_table(frame, CANDIDATES, ImportOptions(context=["user"]))
    with pytest.raises(InputError, match=r"found 21 \(half has 2, user has 21\)"):
        read_log_table(frame, CANDIDATES, ImportOptions(context=["user", "half"]))


@pytest.mark.parametrize(
    ("context", "message"),
    [(["relevance"], "looks like a relevance label"), (["a", "a"], "'a' is given twice"), ([""], "expected the name")],
)
def test_names_of_contexts_are_checked(context: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ImportOptions(context=context)


def test_weights_are_read_as_written() -> None:
    assert reward_weights(" click = 1 ,cart=-2.5") == {"click": 1, "cart": -2.5}
    assert reward_weights(None) == {}
