"""Damage files of every kind and let cuolr read them: `python -m fuzz --cases 1000`, or `--minutes 60`.

A table of counts goes to stdout, what must not be to stderr; the exit status is 1 if there was any.
"""

import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase

from fuzz.cases import Case, cases
from fuzz.counts import failures, table
from fuzz.kinds.all import KINDS
from fuzz.sandbox import Outcome, Sandbox

CASES_AT_A_TIME = 1_000


def arguments() -> Namespace:
    """What the command line says."""
    parser = ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, help="number of cases of each kind")
    parser.add_argument("--minutes", type=float, help="in place of --cases: how long to go on, over all kinds")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="which kinds of files, by parts of their names")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other cases")
    parser.add_argument("--case", type=int, nargs="*", help="the numbers of one case, as printed, to run it again")
    return parser.parse_args()


def main() -> int:
    """Run the cases; returns the exit status."""
    given = arguments()
    kinds = [kind for kind in KINDS if any(part in kind for part in given.kinds)]
    end = time.monotonic() + 60 * given.minutes if given.minutes else None
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        if given.case:
            return _again(kinds[0], given.case, Path(folder))
        sandboxes = {kind: Sandbox(kind, Path(folder) / f"{i}") for i, kind in enumerate(kinds)}
        first, number = given.seed, 0
        while _goes_on(counts, given.cases, end):
            for kind in kinds:
                wanted = CASES_AT_A_TIME if end else min(CASES_AT_A_TIME, given.cases - counts[kind].total())
                if wanted > 0 and (end is None or time.monotonic() < end):
                    with sandboxes[kind] as sandbox:
                        run(sandbox, wanted, hash((first, number)), counts[kind])
            number += 1
            sys.stderr.write(f"{sum(c.total() for c in counts.values()):,} cases\n")
    print(table(counts))
    return int(any(failures(kind, of_kind) for kind, of_kind in counts.items()))


def run(sandbox: Sandbox, number: int, seed: int, counts: Counter[str]) -> None:
    """Run cases of a kind and count what became of them."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(cases(sandbox.kind))
    def each(case: Case) -> None:
        outcome = sandbox.run(case)
        counts[outcome.verdict] += 1
        if failures(case.kind, Counter([outcome.verdict])):
            _show(case, outcome)

    each()


def _again(kind: str, numbers: list[int], folder: Path) -> int:
    """Run one case, to see what becomes of it."""
    with Sandbox(kind, folder / "0") as sandbox:
        outcome = sandbox.run(Case(kind, numbers[0], tuple(numbers[1:])))
    print(outcome.verdict, outcome.text, sep="\n")
    return int(failures(kind, Counter([outcome.verdict])) > 0)


def _goes_on(counts: dict[str, Counter[str]], wanted: int | None, end: float | None) -> bool:
    if end is not None:
        return time.monotonic() < end
    return any(of_kind.total() < (wanted or 0) for of_kind in counts.values())


def _show(case: Case, outcome: Outcome) -> None:
    numbers = " ".join(map(str, (case.damages, *case.numbers)))
    sys.stderr.write(f"\n{case.kind}: {outcome.verdict}: {outcome.text}\n  --kinds '{case.kind}' --case {numbers}\n")


def _fast_folder() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
