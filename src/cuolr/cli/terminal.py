"""Terminal output: results on stdout, progress and messages on stderr."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from rich import box
from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from cuolr.data.printable_text import printable
from cuolr.progress import Stages

# Characters of a message.
MAX_MESSAGE = 2_000

# The console of the bar or table on display: messages are printed above it.
_showing: list[Console] = []


def in_one_line(text: str) -> str:
    r"""The same, with an escape for each new line, too: no id can pose as a message or a row of its own."""
    return printable(text).replace("\n", "\\n")


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str | None = None,
    left: Sequence[int] = (0,),
) -> None:
    """Print a table; columns are right-aligned, those in `left` left-aligned; empty heads are not shown."""
    table = Table(box=box.SIMPLE_HEAD)
    table.show_header = any(columns)
    for i, column in enumerate(columns):
        table.add_column(escape(in_one_line(column)), justify="left" if i in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(in_one_line(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:
        # A file or a pipe has no width to fit.
        console = Console(width=max(200, console.width))
    # Title and caption are as wide as the terminal, however narrow the table is.
    if title:
        console.print(Text(in_one_line(title), "table.title"))
    console.print(table)
    if caption:
        console.print(Text(printable(caption), "table.caption"), end="\n\n")


def show_text(text: str) -> None:
    """Print a result as text."""
    Console().print(printable(text), markup=False, highlight=False, soft_wrap=True)


def bar(share: float, width: int = 40) -> str:
    """A share between 0 and 1 as a bar, to an eighth of a character.

    >>> bar(0.5, width=3)
    '█▌'
    """
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]


def show_json(value: Any) -> None:
    """Print one JSON object for programs."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def say(message: str) -> None:
    """Print a message on stderr; the middle of one that is very long is left out, such as thousands of columns."""
    console = _showing[-1] if _showing else Console(stderr=True)
    if len(message) > MAX_MESSAGE:
        message = f"{message[: MAX_MESSAGE // 2]} … {message[-MAX_MESSAGE // 2 :]}"
    console.print(in_one_line(message), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _console() -> Iterator[Console]:
    """The console of a display that lasts until the end of the block."""
    console = _showing[-1] if _showing else Console(stderr=True)
    _showing.append(console)
    try:
        yield console
    finally:
        _showing.pop()


class _Bars(Progress):
    """Progress bars that write nothing at all where there is no terminal: rich below 14.3 ends with an empty line."""

    def stop(self) -> None:
        if not self.disable:
            super().stop()


@contextmanager
def progress_bar(what: str, total: int, unit: Literal["items", "bytes"] = "items") -> Iterator[Callable[[float], None]]:
    """A progress bar with the remaining time; yields a function that takes the amount done since the last call."""
    count = {"items": MofNCompleteColumn, "bytes": DownloadColumn}[unit]()
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn(compact=True))
    with (
        _console() as console,
        _Bars(
            *columns,
            console=console,
            transient=True,
            disable=not console.is_terminal,
            speed_estimate_period=float("inf"),  # one item may take minutes
        ) as progress,
    ):
        task = progress.add_task(escape(in_one_line(what)), total=total)
        yield lambda done: progress.advance(task, done)


class _TimeColumn(ProgressColumn):
    """The remaining time of a stage or, where it cannot be told, the time that it has taken so far."""

    left, taken = TimeRemainingColumn(compact=True), TimeElapsedColumn()

    def render(self, task: Task) -> RenderableType:
        return self.taken.render(task) if task.time_remaining is None else self.left.render(task)


@contextmanager
def stage_bars() -> Iterator[Stages]:
    """A progress bar for one stage after the other, each with its remaining time."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn("{task.percentage:>3.0f}%", ""))
    with (
        _console() as console,
        _Bars(
            *columns,
            _TimeColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            speed_estimate_period=float("inf"),  # one item may take minutes
        ) as progress,
    ):

        def begin(name: str, total: int | None) -> Callable[[int], None]:
            for earlier in progress.task_ids:
                progress.remove_task(earlier)
            task = progress.add_task(escape(in_one_line(name)), total=total)

            def advance(amount: int) -> None:
                if task in progress.task_ids:  # the stage may have been followed by another
                    progress.advance(task, amount)

            return advance

        yield begin


@contextmanager
def training_bar(steps: int) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """A bar with the time left, the loss, Q, and validation; a line for each validation where there is no terminal.

    The function that it gives takes the number of the step, from 1, and what was measured.
    """
    columns = (
        TextColumn("training"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[values]}"),
    )
    latest: dict[str, float] = {}
    with (
        _console() as console,
        _Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task("", total=steps, values="")

        def show(step: int, values: Mapping[str, float]) -> None:
            latest.update({name: values[name] for name in ("loss", "q", "validation", "best") if name in values})
            text = ", ".join(f"{name} {value:.4f}" for name, value in latest.items())
            progress.update(task, completed=step, values=text)
            if "validation" in values and not console.is_terminal:
                say(f"step {step} of {steps}: {text}")

        yield show


@contextmanager
def live_table(
    title: str, columns: Sequence[str], rows: Sequence[str]
) -> Iterator[Callable[[str, Sequence[str], str], None]]:
    """A table that fills up as results arrive; lines where there is no terminal.

    The function that it gives takes a row, the columns that the value is for, and the value.

    Args:
        title: Above it.
        columns: Heads, the first of which is the rows'.
        rows: The first cell of each row.
    """
    values: dict[tuple[str, str], str] = {}

    def table() -> Table:
        made = Table(title=escape(in_one_line(title)), box=box.SIMPLE_HEAD, title_justify="left")
        for i, column in enumerate(columns):
            made.add_column(escape(in_one_line(column)), justify="right" if i else "left")
        for row in rows:
            made.add_row(
                escape(in_one_line(row)), *(values.get((row, column), "[dim]…[/dim]") for column in columns[1:])
            )
        return made

    with _console() as console, ExitStack() as stack:
        live = None
        if console.is_terminal:
            live = stack.enter_context(Live(table(), console=console, auto_refresh=False, transient=True))

        def put(row: str, places: Sequence[str], value: str) -> None:
            values.update({(row, column): escape(in_one_line(value)) for column in places})
            if live is None:
                say(f"{row}, {', '.join(places)}: {value}")
            else:
                live.update(table(), refresh=True)

        yield put
