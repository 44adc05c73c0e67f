"""`python -m benchmarks [NAME …]`: run the benchmarks and print one table."""

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks.table import Row
from cuolr.cli.terminal import say, show_table


def main() -> None:
    """Run the named benchmarks, or all."""
    names = sys.argv[1:] or [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    rows: list[Row] = []
    for name in sorted(set(names) - {"__main__", "table", "clax_child"}):
        say(f"{name} …")
        rows += importlib.import_module(f"benchmarks.{name}").run()
    lines = [[row.name, f"{row.value:,.3g}", row.unit, row.goal, "yes" if row.met else "NO"] for row in rows]
    show_table("benchmarks", ["measured", "value", "unit", "goal", "met"], lines)


if __name__ == "__main__":
    main()
