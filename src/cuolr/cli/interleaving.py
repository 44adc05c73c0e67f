"""`cuolr interleaving`: which of two models the users of a service prefer."""

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import tyro

from cuolr.cli.terminal import progress_bar, show_json, show_table, show_text
from cuolr.errors import problems_in
from cuolr.logs.served_log import files_of_log, read_part

if TYPE_CHECKING:
    from cuolr.off_policy.interleaving import InterleavingOutcome


def interleaving(log: tyro.conf.Positional[Path], json: bool = False) -> None:
    """Test which of two models users prefer, from a log of `cuolr serve --interleave MODEL_B`.

    A session is won by the model whose documents have more clicks. The sign test compares the wins of both models; its
    p-value and interval are exact. They hold for a number of sessions that was fixed before, such as that of `cuolr
    assess`, not for a test that is stopped as soon as it is significant.

    Args:
        log: Folder of the service's log.
        json: Print JSON instead of a table: a list of tests.
    """
    from cuolr.off_policy.interleaving import interleaving_outcomes

    files = files_of_log(log)
    parts = []
    with progress_bar(f"reading {log.name}", len(files)) as progress:
        for file in files:
            parts.append(read_part(file))
            progress(1)
    with problems_in(log):
        outcomes = interleaving_outcomes(pl.concat(parts))
    if json:
        show_json([outcome.as_dict() for outcome in outcomes])
    else:
        for outcome in outcomes:
            _show(outcome)


def _show(found: "InterleavingOutcome") -> None:
    low, high = found.share_interval
    least, most = found.preference_interval
    rows = [
        ["sessions", f"{found.sessions:,}"],
        ["with a click", f"{found.with_clicks:,}"],
        [f"won by {found.first}", f"{found.first_wins:,}"],
        [f"won by {found.second}", f"{found.second_wins:,}"],
        ["tied", f"{found.ties:,}"],
    ]
    if found.first_wins + found.second_wins:
        rows.append([f"share won by {found.second}, of those decided", f"{found.share:.1%} ({low:.1%} to {high:.1%})"])
        rows.append(["p-value of the sign test", f"{found.p_value:.3g}"])
    if found.sessions > 1:
        change = f"{found.preference:+.4f} ({least:+.4f} to {most:+.4f})"
        rows.append([f"clicks for {found.second} minus {found.first}, per session", change])
    show_table(f"{found.first} and {found.second}", ["", ""], rows)
    show_text(f"{found.preferred} is preferred" if found.preferred else "no significant preference")
