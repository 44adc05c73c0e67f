"""What people see: results on stdout, progress and messages on stderr."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str | None = None) -> None:
    """Print a table: the first column to the left, numbers to the right."""
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        # A file or a pipe has no width to fit; lines are as long as they need to be.
        console = Console(width=max(200, console.width))
    console.print(table)


def show_json(value: Any) -> None:
    """Print one JSON object for programs."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def say(message: str) -> None:
    """A message beside the results."""
    Console(stderr=True).print(message, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(what: str, total: int, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar with the time left; the function that it gives takes the amount done since the last call."""
    count = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn(compact=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)
