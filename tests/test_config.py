import os
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from cuolr.config import Range, SettingError, check_ranges, from_dict, ranges_of, read_toml, to_dict, to_toml
from cuolr.errors import InputError


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    sizes: tuple[int, ...] = (256, 256)


@dataclass(frozen=True)
class Outer:
    name: str
    kind: Literal["a", "b"] = "a"
    inner: Inner = field(default_factory=Inner)
    limit: int | None = None
    flag: bool = False
    pair: tuple[int, str] = (1, "x")


def test_a_config_round_trips_through_toml(tmp_path: Path) -> None:
    config = Outer("x", "b", Inner(0.25, (3,)), 7, True, (2, "y"))
    (tmp_path / "config.toml").write_text(to_toml(config))
    assert from_dict(Outer, read_toml(tmp_path / "config.toml")) == config


def test_fields_that_are_none_are_left_out_and_come_back() -> None:
    assert "limit" not in to_dict(Outer("x"))
    assert from_dict(Outer, to_dict(Outer("x"))) == Outer("x")


def test_none_is_said_where_it_is_not_the_default() -> None:
    @dataclass(frozen=True)
    class Clipped:
        norm: float | None = 1.0
        name: str | None = "x"

    assert to_dict(Clipped(None)) == {"norm": "none", "name": "x"}
    assert from_dict(Clipped, {"norm": "none"}) == Clipped(None)
    assert from_dict(Clipped, {"name": "none"}).name == "none", "a string"


def test_a_whole_number_is_taken_where_a_number_is_asked_for() -> None:
    rate = from_dict(Inner, {"rate": 1}).rate
    assert (rate, type(rate)) == (1.0, float)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, "setting 'name' is missing; expected a string"),
        ({"nam": "x"}, "unknown setting 'nam' (did you mean 'name'?); known: flag, inner, kind, limit, name, pair"),
        ({"name": 3}, "setting 'name': expected a string, found 3"),
        ({"name": "x", "kind": "c"}, "setting 'kind': expected one of 'a', 'b', found 'c'"),
        ({"name": "x", "flag": 1}, "setting 'flag': expected true or false, found 1"),
        ({"name": "x", "limit": 1.5}, "setting 'limit': expected a whole number or none, found 1.5"),
        ({"name": "x", "inner": {"rate": True}}, "setting 'inner.rate': expected a number, found True"),
        ({"name": "x", "inner": {"sizes": [1, "2"]}}, "setting 'inner.sizes[1]': expected a whole number, found '2'"),
        ({"name": "x", "inner": {"size": []}}, "unknown setting 'inner.size' (did you mean 'inner.sizes'?)"),
        ({"name": "x", "inner": 3}, "setting 'inner': expected a table of settings, found 3"),
        ({"name": "x", "pair": [1]}, "setting 'pair': expected a list of a whole number, a string, found [1]"),
    ],
)
def test_a_wrong_setting_is_named(values: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        from_dict(Outer, values)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    "content",
    [
        "a = " + "[" * 100_000,
        "a = " + "{b = " * 10_000,
        ".".join(["a"] * 100_000) + " = 1",
        "[" + " . ".join(["'a'", '"b"'] * 20_000) + "]",
        "a = " + "9" * 5_000,
        "a = 0x" + "f" * 5_000,
        "# " + "x" * (1 << 20),
        b"a = '\xff'",
    ],
)
def test_a_file_that_would_take_all_memory_or_the_stack_is_one_line(content: str | bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=r"bad.toml: not valid TOML: ") as caught:
        read_toml(tmp_path / "bad.toml")
    assert len(str(caught.value)) < 500


def test_a_whole_number_that_no_float_holds_is_named() -> None:
    with pytest.raises(InputError, match=r"setting 'rate': expected a number, found -1000000") as caught:
        from_dict(Inner, {"rate": -(10**400)})
    assert len(str(caught.value)) < 400


def test_a_file_that_is_not_toml_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(InputError, match=r"bad.toml: not valid TOML: "):
        read_toml(tmp_path / "bad.toml")
    with pytest.raises(InputError, match=r"absent.toml: file not found"):
        read_toml(tmp_path / "absent.toml")


@dataclass(frozen=True)
class Bounded:
    rate: Annotated[float, Range(0, 1)] = 0.5
    weight: Annotated[float, Range(1)] = 1.0
    norm: Annotated[float, Range(above=0)] | None = None
    held_out: Annotated[float, Range(above=0, below=1)] = 0.1
    count: Annotated[int, Range(1)] = 1
    sizes: tuple[Annotated[int, Range(1)], ...] = (1,)
    pair: tuple[int, Annotated[int, Range(at_most=3)]] = (9, 3)
    automatic: Annotated[float, Range(0)] | Literal["automatic"] = "automatic"
    by_name: dict[str, Annotated[float, Range(0, 1)]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class Holder:
    bounded: Bounded = field(default_factory=Bounded)
    plain: Literal["a", "b"] = "a"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"rate": 2}, "setting 'rate': expected 0 to 1, found 2"),
        ({"rate": nan}, "setting 'rate': expected 0 to 1, found nan"),
        ({"weight": 0.5}, "setting 'weight': expected a finite number >= 1, found 0.5"),
        ({"weight": inf}, "setting 'weight': expected a finite number >= 1, found inf"),
        ({"norm": 0.0}, "setting 'norm': expected a finite number above 0, found 0.0"),
        ({"held_out": 1.0}, "setting 'held_out': expected above 0 and below 1, found 1.0"),
        ({"count": 0}, "setting 'count': expected a whole number >= 1, found 0"),
        ({"sizes": (4, 0)}, "setting 'sizes[1]': expected a whole number >= 1, found 0"),
        ({"pair": (9, 4)}, "setting 'pair[1]': expected a whole number at most 3, found 4"),
        ({"automatic": -1}, "setting 'automatic': expected a finite number >= 0, found -1"),
        ({"by_name": {"x": 2}}, "setting 'by_name.x': expected 0 to 1, found 2"),
    ],
)
def test_a_number_out_of_its_range_is_named(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingError) as caught:
        Bounded(**values)
    assert caught.value.problems == [problem]


def test_the_ends_of_a_range_are_in_it_and_none_is_no_number() -> None:
    assert Bounded(rate=0, weight=1, norm=None, count=1, pair=(9, 3)) == Bounded(rate=0)
    assert Bounded(rate=1, norm=1e-12, automatic=0, by_name={"x": 1})


def test_every_setting_out_of_range_is_reported_with_the_table_it_is_in() -> None:
    with pytest.raises(InputError) as caught:
        from_dict(Holder, {"bounded": {"rate": 2, "sizes": [0]}, "plain": "c"}, "learner")
    assert caught.value.problems == [
        "setting 'learner.bounded.rate': expected 0 to 1, found 2.0",
        "setting 'learner.bounded.sizes[0]': expected a whole number >= 1, found 0",
        "setting 'learner.plain': expected one of 'a', 'b', found 'c'",
    ]


def test_a_config_checks_the_ranges_of_the_configs_in_it() -> None:
    @dataclass(frozen=True)
    class Unchecked:
        rate: Annotated[float, Range(0, 1)] = 0.5

    @dataclass(frozen=True)
    class Checked:
        inner: Unchecked = field(default_factory=Unchecked)

    with pytest.raises(SettingError, match=r"setting 'inner\.rate': expected 0 to 1, found 2"):
        check_ranges(Checked(Unchecked(rate=2)))


def test_ranges_are_told_in_words() -> None:
    assert ranges_of(Holder) == {
        "bounded.rate": "0 to 1",
        "bounded.weight": "a finite number >= 1",
        "bounded.norm": "a finite number above 0 or none",
        "bounded.held_out": "above 0 and below 1",
        "bounded.count": "a whole number >= 1",
        "bounded.sizes": "a list, each entry a whole number >= 1",
        "bounded.pair": "a list of a whole number, a whole number at most 3",
        "bounded.automatic": "a finite number >= 0 or 'automatic'",
        "bounded.by_name": "a table with 0 to 1 for each key",
        "plain": "one of 'a', 'b'",
    }


def test_a_whole_number_larger_than_any_float_is_out_of_range() -> None:
    assert 10**308 in Range(1)
    assert 10**309 not in Range(1)


def test_a_number_in_place_of_a_table_is_refused() -> None:
    with pytest.raises(InputError, match=r"setting 'training': expected a table, found 0\.5"):
        from_dict(Bounded, 0.5, "training")  # type: ignore[arg-type]


def test_a_pipe_is_not_read_as_toml(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.toml")
    with pytest.raises(InputError, match=r"model.toml: expected a file, found a folder or a device$"):
        read_toml(tmp_path / "model.toml")
