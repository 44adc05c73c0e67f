import json
from pathlib import Path

import pytest

from benchmarks.history import Machine, change, earlier_values, record, this_machine
from benchmarks.table import Row

HERE, ELSEWHERE = Machine("Some CPU @ 3 GHz", 2), Machine("Some CPU @ 3 GHz", 8)


def row(value: float, name: str = "rank: top 10", unit: str = "s") -> Row:
    return Row(name, value, unit, "", True)


def test_the_median_of_the_latest_runs_on_such_a_machine_counts(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    for value in (9, 9, 1, 2, 3, 4, 100):
        record([row(value)], HERE, history)
    record([row(50)], ELSEWHERE, history)
    assert earlier_values(HERE, history) == {"rank: top 10": 3}
    assert earlier_values(ELSEWHERE, history) == {"rank: top 10": 50}
    assert earlier_values(Machine("Another CPU", 2), history) == {}
    first = json.loads(history.read_text().splitlines()[0])
    assert (first["cpu"], first["cores"], first["rows"]) == ("Some CPU @ 3 GHz", 2, {"rank: top 10": 9.0})


@pytest.mark.parametrize(
    ("measured", "before", "expected"),
    [
        (row(1.2), 1.0, ("+20%", False)),
        (row(1.21), 1.0, ("+21%", True)),
        (row(0.5), 1.0, ("-50%", False)),
        (row(26, "hashes of a log: comparing", "CPU ms"), 20.0, ("+30%", True)),
        (row(80, "letor_read text: speed", "MB/s"), 100.0, ("-20%", True)),
        (row(130, "letor_read text: speed", "MB/s"), 100.0, ("+30%", False)),
        (row(2, "simulate pbm: speed over a loop", "×"), 4.0, ("-50%", True)),
        (row(0.01, "largest error", ""), 0.001, ("", False)),
        (row(1.0), None, ("", False)),
    ],
)
def test_a_slowdown_of_more_than_a_fifth_is_seen(
    measured: Row, before: float | None, expected: tuple[str, bool]
) -> None:
    assert change(measured, before) == expected


def test_this_machine_has_a_name_and_cores() -> None:
    assert this_machine().cores >= 1
    assert earlier_values(this_machine(), Path("no such file")) == {}
