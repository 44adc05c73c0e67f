from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from cuolr.config import from_dict, read_toml, to_dict, to_toml
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
    assert from_dict(Clipped, {"name": "none"}).name == "none", "a text"


def test_a_whole_number_is_taken_where_a_number_is_asked_for() -> None:
    rate = from_dict(Inner, {"rate": 1}).rate
    assert (rate, type(rate)) == (1.0, float)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, "setting 'name' is missing; expected a text"),
        ({"nam": "x"}, "unknown setting 'nam' (did you mean 'name'?); known: flag, inner, kind, limit, name, pair"),
        ({"name": 3}, "setting 'name': expected a text, found 3"),
        ({"name": "x", "kind": "c"}, "setting 'kind': expected one of 'a', 'b', found 'c'"),
        ({"name": "x", "flag": 1}, "setting 'flag': expected true or false, found 1"),
        ({"name": "x", "limit": 1.5}, "setting 'limit': expected a whole number or none, found 1.5"),
        ({"name": "x", "inner": {"rate": True}}, "setting 'inner.rate': expected a number, found True"),
        ({"name": "x", "inner": {"sizes": [1, "2"]}}, "setting 'inner.sizes[1]': expected a whole number, found '2'"),
        ({"name": "x", "inner": {"size": []}}, "unknown setting 'inner.size' (did you mean 'inner.sizes'?)"),
        ({"name": "x", "inner": 3}, "setting 'inner': expected Inner, found 3"),
        ({"name": "x", "pair": [1]}, "setting 'pair': expected a list of a whole number, a text, found [1]"),
    ],
)
def test_a_wrong_setting_is_named(values: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        from_dict(Outer, values)
    assert str(caught.value).startswith(problem)


def test_a_file_that_is_not_toml_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(InputError, match=r"bad.toml: not valid TOML: "):
        read_toml(tmp_path / "bad.toml")
    with pytest.raises(InputError, match=r"absent.toml: cannot be read \(No such file"):
        read_toml(tmp_path / "absent.toml")
