"""`cuolr propensity`: how users look at positions, as a table and a picture."""

from pathlib import Path

import tyro

from cuolr.data.clicklog import read_click_log
from cuolr.data.propensity_file import PROPENSITY_FILE, Estimate, Propensities, read_propensities, save_propensities
from cuolr.errors import InputError
from cuolr.files import refuse_existing
from cuolr.propensity import estimate_propensities
from cuolr.propensity_plot import plot_propensities
from cuolr.terminal import say, show_json, show_table


def propensity(
    source: tyro.conf.Positional[Path],
    randomised: bool = False,
    out: Path | None = None,
    plot: Path | None = None,
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Show how users look at positions: what ipw and cm-ipw weight clicks by.

    Args:
        source: Folder of a click log with propensity.json in it, or such a file.
        randomised: The source is a log whose lists were shown in random order: estimate from its clicks.
        out: Write the estimates to this file, to be given to `cuolr train --propensities`.
        plot: Draw the estimates into this file (.png, .svg or .pdf).
        json: Print JSON instead of a table.
        overwrite: Replace the files if they are there.
    """
    for file in (out, plot):
        if file is not None:
            refuse_existing(file, overwrite)
    found = estimate_propensities(lambda: read_click_log(source)) if randomised else _read(source)
    if out is not None:
        save_propensities(found, out)
        say(f"wrote {out}")
    if plot is not None:
        plot_propensities(found, plot)
        say(f"wrote {plot}")
    columns = _columns(found)
    if json:
        show_json({"lists": found.lists, **{name: estimate.values for name, estimate in columns.items()}})
        return
    positions = max(len(estimate.values) for estimate in columns.values())
    rows = [[str(place + 1), *(_cell(e, place) for e in columns.values())] for place in range(positions)]
    behind = f"from {found.lists:,} lists in random order, ± two standard errors" if found.lists else "as given"
    show_table(f"how users look at positions, {behind}", ["position", *columns], rows)


def _read(source: Path) -> Propensities:
    file = source / PROPENSITY_FILE if source.is_dir() else source
    if not file.is_file():
        raise InputError(
            f"{file}: not found; `cuolr simulate` writes it with --randomised-lists, and with --randomised it is "
            "estimated from a log whose lists were shown in random order"
        )
    return read_propensities(file)


def _columns(propensities: Propensities) -> dict[str, Estimate]:
    examination = {} if propensities.examination is None else {"examination": propensities.examination}
    return examination | {f"continuation ({method})": e for method, e in propensities.continuation.items()}


def _cell(estimate: Estimate, place: int) -> str:
    value = estimate.values[place] if place < len(estimate.values) else None
    if value is None:
        return "unknown"
    error = estimate.standard_errors[place] if estimate.standard_errors else None
    return f"{value:.4f}" if error is None else f"{value:.4f} ± {2 * error:.4f}"
