"""`python -m benchmarks [--record] [NAME …]`: run the benchmarks and print one table.

The table compares with earlier runs on such a machine, as `history.jsonl` has them; `--record` adds this run.
A measurement that is worse by more than 20 % is marked, and the exit status is 1.
"""

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks.history import change, earlier_values, record, this_machine
from benchmarks.table import Row
from cuolr.cli.terminal import say, show_table

# Modules that measure nothing.
OTHERS = {"__main__", "table", "history", "clax_child"}
RECORD = "--record"


def main() -> int:
    """Run the named benchmarks, or all; returns the exit status."""
    names = set(sys.argv[1:]) - {RECORD} or {module.name for module in pkgutil.iter_modules(benchmarks.__path__)}
    rows: list[Row] = []
    for name in sorted(names - OTHERS):
        say(f"{name} …")
        rows += importlib.import_module(f"benchmarks.{name}").run()
    machine = this_machine()
    before = earlier_values(machine)
    changes = [change(row, before.get(row.name)) for row in rows]
    lines = [
        [
            row.name,
            f"{row.value:,.3g}",
            row.unit,
            row.goal,
            "yes" if row.met else "NO",
            f"{text} SLOWER" if slower else text,
        ]
        for row, (text, slower) in zip(rows, changes, strict=True)
    ]
    show_table(
        f"benchmarks, {machine.cpu}, {machine.cores} cores",
        ["measured", "value", "unit", "goal", "met", "before"],
        lines,
    )
    if RECORD in sys.argv:
        record(rows, machine)
    return int(any(slower for _, slower in changes))


if __name__ == "__main__":
    sys.exit(main())
