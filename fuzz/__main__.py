"""Damage files of every kind and let cuolr read them: `python -m fuzz --total 100000`, or `--minutes 60`.

A table of counts goes to stdout, what must not be to stderr; the exit status is 1 if there was any.
"""

import math
import shlex
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase

import cuolr
from fuzz.cases import Case, cases, shares
from fuzz.counts import failures, read_counts, table, write_counts
from fuzz.kinds.all import KINDS
from fuzz.processes import Tell, in_processes
from fuzz.sandbox import Outcome, Sandbox

CASES_AT_A_TIME = 1_000
# Of each kind, by which the time of a case is measured, and the least number, if cases are dealt out by time.
FIRST_CASES, LEAST_CASES = 20, 1_000


def arguments() -> Namespace:
    """What the command line says."""
    parser = ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, help="number of cases of each kind")
    parser.add_argument("--minutes", type=float, help="how long to go on, over all kinds; with --cases, at most")
    parser.add_argument("--total", type=int, help="in place of --cases: number of all cases, more of the faster kinds")
    parser.add_argument("--at-least", nargs="*", default=[], metavar="KIND=N", help="with --total: more of a kind")
    parser.add_argument("--out", type=Path, help="JSON file of the counts, written as they grow")
    parser.add_argument("--resume", action="store_true", help="with --cases: go on with the counts of --out")
    parser.add_argument("--table", type=Path, help="print the table of such a file, and run nothing")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="which kinds of files, by parts of their names")
    parser.add_argument("--processes", type=int, default=1, help="number of kinds that are read at the same time")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other cases")
    parser.add_argument("--case", type=int, nargs="*", help="the numbers of one case, as printed, to run it again")
    return parser.parse_args()


def main() -> int:
    """Run the cases; returns the exit status."""
    given = arguments()
    if given.table is not None:
        print(table(read_counts(given.table)[0]))
        return 0
    kinds = [kind for kind in KINDS if any(part in kind for part in given.kinds)]
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    if given.resume and given.out.exists():
        counts |= read_counts(given.out)[0]
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        if given.case:
            return _again(kinds[0], given.case, Path(folder))
        for kind, of_kind in in_processes(partial(_work, given, Path(folder), counts), kinds, given.processes):
            counts[kind] = of_kind
            _keep(given, counts)
    print(table(counts))
    return int(any(failures(kind, of_kind) for kind, of_kind in counts.items()))


def _work(given: Namespace, folder: Path, before: dict[str, Counter[str]], kinds: Sequence[str], tell: Tell) -> None:
    """Run the cases of some kinds, and tell the counts as they grow from those before."""
    end = time.monotonic() + 60 * given.minutes if given.minutes else math.inf
    counts = {kind: Counter(before[kind]) for kind in kinds}
    sandboxes = {kind: Sandbox(kind, folder / f"{kind}") for kind in kinds}
    wanted: dict[str, float] = dict.fromkeys(kinds, given.cases or (math.inf if given.minutes else 0))
    if given.total:
        wanted |= _dealt_out(given, sandboxes, counts)
    while time.monotonic() < end and any(counts[kind].total() < wanted[kind] for kind in kinds):
        for kind in kinds:
            done = counts[kind].total()
            cases = int(min(CASES_AT_A_TIME, wanted[kind] - done))
            if cases > 0 and time.monotonic() < end:
                with sandboxes[kind] as sandbox:
                    run(sandbox, cases, hash((given.seed, done)), counts[kind])
                tell((kind, counts[kind]))


def _dealt_out(given: Namespace, sandboxes: dict[str, Sandbox], counts: dict[str, Counter[str]]) -> dict[str, int]:
    """How many cases of each kind, after some of each that are counted, too."""
    seconds = {}
    for kind, sandbox in sandboxes.items():
        with sandbox:
            start = time.monotonic()
            run(sandbox, FIRST_CASES, hash((given.seed, -1)), counts[kind])
            seconds[kind] = (time.monotonic() - start) / FIRST_CASES
    total = given.total * len(sandboxes) // sum(any(part in kind for part in given.kinds) for kind in KINDS)
    wanted = shares(total, seconds, min(LEAST_CASES, total // len(sandboxes)))
    for kind, least in (text.rsplit("=", 1) for text in given.at_least):
        if kind in wanted:
            wanted[kind] = max(wanted[kind], int(least))
    return wanted


def _keep(given: Namespace, counts: dict[str, Counter[str]]) -> None:
    """Write what was counted so far."""
    if given.out is not None:
        typed = [word for word in sys.argv[1:] if word not in ("--out", str(given.out), "--resume")]
        facts = {"command": shlex.join(["python", "-m", "fuzz", *typed]), "cuolr": cuolr.__version__}
        write_counts(given.out, counts, facts)


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


def _show(case: Case, outcome: Outcome) -> None:
    numbers = " ".join(map(str, (case.damages, *case.numbers)))
    sys.stderr.write(f"\n{case.kind}: {outcome.verdict}: {outcome.text}\n  --kinds '{case.kind}' --case {numbers}\n")


def _fast_folder() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
