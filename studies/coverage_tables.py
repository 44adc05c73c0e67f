"""The results of `studies.gain_coverage`: their file, and the tables of docs/results/gain-coverage.md."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
from scipy.stats import binomtest

from cuolr.files import atomic_file

Line = dict[str, Any]
SIZES = ("queries", "documents", "sessions", "training_sessions", "truth", "steps")
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(("users", "logger"), pl.String),
    "log": pl.Int32,
    "policy": pl.String,
    "size": pl.Struct(dict.fromkeys(SIZES, pl.Int32)),
    **dict.fromkeys(("truth", "gain"), pl.Float32),
    "interval": pl.List(pl.Float32),
    "recommendation": pl.String,
    "identifiable": pl.Boolean,
    "plausible": pl.List(pl.String),
}

NAMES = {name: name.upper() for name in ("pbm", "dcm", "ccm", "ubm", "dbn", "sdbn")} | {"trust": "trust bias"}
GROUPS = {"users": "users", "logger": "logging policy", "policy": "policy"}
# A gain that a log of random lists should find.
LARGE_GAIN = 0.05
# Runs that are shown one by one, if there are no more; otherwise by setting.
FEW_RUNS = 40


def saved_runs(path: Path) -> list[Line]:
    """The runs so far, in the order in which they were made."""
    return pl.read_parquet(path).to_dicts() if path.exists() else []


def save_runs(path: Path, lines: Sequence[Line]) -> None:
    """Write all runs, with single precision, which is more than any of their numbers is worth."""
    with atomic_file(path) as part:
        pl.DataFrame(lines, schema=SCHEMA).write_parquet(part)


def has_truth(line: Line) -> bool:
    """Whether the interval has the true gain."""
    low, high = line["interval"]
    return bool(low <= line["truth"] <= high)


def ships(line: Line) -> bool:
    """Whether shipping is recommended."""
    return bool(line["recommendation"] == "ship")


def gains_nothing(line: Line) -> bool:
    """Whether the true gain is 0 or less."""
    return bool(line["truth"] <= 0)


def should_ship(line: Line) -> bool:
    """Whether the gain is large, and lists are random."""
    return bool(line["truth"] >= LARGE_GAIN and line["logger"].startswith("plackett-luce"))


def markdown(lines: Sequence[Line]) -> Iterator[str]:
    """The tables, line by line: pooled by users, logging policy and policy, and what was missed."""
    logs = Counter((line["users"], line["logger"]) for line in {_log(line): line for line in lines}.values())
    number = (
        f"{min(logs.values())}" if len(set(logs.values())) == 1 else f"{min(logs.values())} to {max(logs.values())}"
    )
    yield f"{len(lines):,} runs: {number} logs of each of {len(logs)} settings."
    for by, title in GROUPS.items():
        yield from ("", *_pooled(lines, by, title))
    if len(lines) <= FEW_RUNS:
        yield from ("", "All runs:", "", *_runs(lines))
        return
    missed: dict[str, Callable[[Line], bool]] = {
        "Intervals without the truth": lambda line: not has_truth(line),
        "*Ship* although the truth is ≤ 0": lambda line: ships(line) and gains_nothing(line),
        "Random lists, truth ≥ 5 %, not *ship*": lambda line: should_ship(line) and not ships(line),
    }
    for title, is_missed in missed.items():
        of_title = [line for line in lines if is_missed(line)]
        yield from ("", f"{title}: {len(of_title) or 'none'}.")
        if of_title:
            yield from ("", *(_runs(of_title) if len(of_title) <= FEW_RUNS else _settings(of_title)))


def share(lines: Sequence[Line], holds: Callable[[Line], bool]) -> str:
    """How many of the lines, with the bounds of Clopper and Pearson (95 %)."""
    if not lines:
        return "–"
    found = sum(map(holds, lines))
    low, high = binomtest(found, len(lines)).proportion_ci(method="exact")
    return f"{found} of {len(lines)} ({low:.1%}–{high:.1%})"


def _log(line: Line) -> tuple[str, str, int]:
    return line["users"], line["logger"], line["log"]


def _pooled(lines: Sequence[Line], by: str, title: str) -> Iterator[str]:
    yield (
        f"| {title} | truth in the interval, position bias identifiable | … all logs | *ship* if the truth is ≤ 0 "
        "| *ship* if it is ≥ 5 %, random lists |"
    )
    yield "|---|---|---|---|---|"
    groups = {name: [line for line in lines if line[by] == name] for name in dict.fromkeys(line[by] for line in lines)}
    for name, group in {**groups, "**all**": list(lines)}.items():
        cells = (
            share([line for line in group if line["identifiable"]], has_truth),
            share(group, has_truth),
            share([line for line in group if gains_nothing(line)], ships),
            share([line for line in group if should_ship(line)], ships),
        )
        yield f"| {NAMES.get(name, name)} | {' | '.join(cells)} |"


def _runs(lines: Sequence[Line]) -> Iterator[str]:
    yield "| users | logging policy | log | policy | true gain | `assess` says |"
    yield "|---|---|---|---|---|---|"
    for line in lines:
        where = f"{NAMES.get(line['users'], line['users'])} | {line['logger']} | {line['log'] + 1} | {line['policy']}"
        truth, found = _in_percent([line])
        yield f"| {where} | {truth} | {line['recommendation']}, {found} |"


def _settings(lines: Sequence[Line]) -> Iterator[str]:
    """Runs of the same users, logging policy and policy together."""
    groups: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["users"], line["logger"], line["policy"]), []).append(line)
    yield "| users | logging policy | policy | runs | true gain, median | `assess` says, median |"
    yield "|---|---|---|---|---|---|"
    for (users, logger, policy), group in sorted(groups.items(), key=lambda item: -len(item[1])):
        where = f"{NAMES.get(users, users)} | {logger} | {policy}"
        yield f"| {where} | {len(group)} | {' | '.join(_in_percent(group))} |"


def _in_percent(lines: Sequence[Line]) -> tuple[str, str]:
    """The true gain, and the estimate with its interval; medians of several runs."""
    numbers = [(line["truth"], line["gain"], *line["interval"]) for line in lines]
    truth, gain, low, high = (median(of_runs) for of_runs in zip(*numbers, strict=True))
    # Shares of a thousandth of a percent are shown as such.
    digits = 1 if max(abs(truth), abs(low), abs(high)) >= 0.0005 else 4
    return f"{truth:+.{digits}%}", f"{gain:+.{digits}%} ({low:+.{digits}%} to {high:+.{digits}%})"
