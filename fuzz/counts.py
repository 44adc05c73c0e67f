"""What became of the cases of each kind, as a table."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuzz.kinds.all import KINDS

HEAD = (
    "kind of file", "cases", "refused", "…, with a note", "equal values", "other values", "crashes", "hangs", "memory",
    "tracebacks",
)  # fmt: skip
VERDICTS = ("refused", "noted", "equal", "other", "crash", "hang", "memory", "traceback")
FAILURES = ("crash", "hang", "memory", "traceback")


def failures(kind: str, counts: Counter[str]) -> int:
    """The cases that must not be: other values count where a checksum exists."""
    return sum(counts[name] for name in FAILURES) + (counts["other"] if KINDS[kind].checksum else 0)


def table(counts: Mapping[str, Counter[str]]) -> str:
    """The counts as a table in Markdown."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---" + "|--:" * (len(HEAD) - 1) + "|"]
    total: Counter[str] = Counter()
    for kind, of_kind in counts.items():
        total += of_kind
        lines.append(_row(kind + (" ✓" if KINDS[kind].checksum else ""), of_kind))
    return "\n".join([*lines, _row("**all**", total)])


def _row(name: str, counts: Counter[str]) -> str:
    numbers = [counts.total(), *(counts[verdict] for verdict in VERDICTS)]
    return "| " + " | ".join([name, *(f"{number:,}" for number in numbers)]) + " |"


def write_counts(file: Path, counts: Mapping[str, Counter[str]], facts: Mapping[str, Any]) -> None:
    """Write the counts of a run, from which the table of the documentation is made.

    Args:
        file: A JSON file.
        counts: By kind of file and verdict.
        facts: What was run.
    """
    by_kind = {kind: {verdict: of_kind[verdict] for verdict in VERDICTS} for kind, of_kind in counts.items()}
    file.write_text(json.dumps({**facts, "counts": by_kind}, indent=1) + "\n", encoding="utf-8")


def read_counts(file: Path) -> tuple[dict[str, Counter[str]], dict[str, Any]]:
    """The counts that `write_counts` wrote, and what was run."""
    content = json.loads(file.read_bytes())
    return {kind: Counter(of_kind) for kind, of_kind in content.pop("counts").items()}, content
