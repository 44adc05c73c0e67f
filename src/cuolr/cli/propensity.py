"""`cuolr propensity`: show, estimate and plot examination probabilities by position."""

from collections.abc import Iterator
from pathlib import Path

import tyro

from cuolr.cli.terminal import say, show_json, show_table, stage_bars
from cuolr.clicks.click_model import click_model_from
from cuolr.clicks.randomisation import true_propensities
from cuolr.errors import InputError
from cuolr.examination.plot import (
    at_distance,
    check_plot,
    plot_by_context,
    plot_examination,
    plot_propensities,
)
from cuolr.examination.propensities import (
    PROPENSITY_FILE,
    Estimate,
    Propensities,
    propensities_of_log,
    read_propensities,
    save_propensities,
)
from cuolr.examination.randomised import estimate_propensities, random_lists
from cuolr.files import check_files
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import META_FILE, read_click_log, read_meta
from cuolr.logs.log_info import describe_folder
from cuolr.policies.model_folder import SETTINGS_FILE

# Maximum distance to the last click above that a model's table shows.
MAX_DISTANCE = 3


def propensity(
    source: tyro.conf.Positional[Path],
    randomised: bool = False,
    out: Path | None = None,
    plot: Path | None = None,
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Show or estimate the examination probability of each position, by which ipw and cm-ipw weight clicks.

    For a simulated log, the true values of its click model are shown beside the estimates. For a model that estimated
    examination itself, as factored does, the estimate depends on the last click above, too, and on the context of the
    session, such as the device, if the log has it.

    Args:
        source: Folder of a click log with a propensity.json, or such a file; or the folder of a factored model.
        randomised: Estimate from the clicks on lists that were shown in random order: those that the log marks or, if
            it marks none, all.
        out: Write the estimates to this file, for `cuolr train --propensities`.
        plot: Plot the estimates to this file: .png, .svg or .pdf.
        json: Print JSON instead of a table.
        overwrite: Replace existing files.
    """
    check_plot(plot)
    check_files((out, plot), overwrite)
    if (source / SETTINGS_FILE).is_file():
        _show_model(source, out, plot, json)
        return
    found = _estimate(source) if randomised else _read(source)
    truth = _truth(source, found)
    if out is not None:
        save_propensities(found, out)
        say(f"wrote {out}")
    if plot is not None:
        plot_propensities(found, plot, truth)
        say(f"wrote {plot}")
    columns = _columns(found, truth)
    if json:
        errors = {name: estimate.standard_errors for name, estimate in columns.items() if estimate.standard_errors}
        values = {name: estimate.values for name, estimate in columns.items()}
        show_json({"lists": found.lists, **values, "standard_errors": errors})
        return
    positions = max(len(estimate.values) for estimate in columns.values())
    rows = [[str(place + 1), *(_cell(e, place) for e in columns.values())] for place in range(positions)]
    behind = f"from {found.lists:,} lists in random order, ± two standard errors" if found.lists else "as given"
    show_table(f"examination by position, {behind}", ["position", *columns], rows)


def _show_model(model: Path, out: Path | None, plot: Path | None, json: bool) -> None:
    """The examination that a model estimated from its log, in UBM's parametrisation."""
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.examination.from_clicks import as_lists, curves_as_dict
    from cuolr.policies.model_folder import load_policy

    policy = load_policy(model)
    table, curves = getattr(policy, "examination", None), getattr(policy, "by_context", None)
    if table is None:
        raise InputError(f"{model}: this model does not estimate examination; factored models do")
    if out is not None:
        by_position = tuple(float(value) if value == value else None for value in table[:, 0])
        save_propensities(Propensities(Estimate(by_position)), out)
        say(f"wrote {out}: examination without a click above")
    if plot is not None:
        if curves is None:
            plot_examination(table, plot)
        else:
            plot_by_context(curves, plot)
        say(f"wrote {plot}")
    if json:
        by_context = {} if curves is None else {"by_context": curves_as_dict(curves)}
        show_json({"examination": as_lists(table), **by_context})
        return
    if curves is not None:
        rows = [[str(place + 1), *map(_known, curves.tables[:, place, 0])] for place in range(len(table))]
        heads = ["position", *curves.levels]
        show_table(f"{model}: examination without a click above, relative to position 1, by context", heads, rows)
    distances = range(min(len(table), MAX_DISTANCE + 1))
    heads = ["no click above", *(f"click {d} above" for d in distances[1:])]
    columns = [at_distance(table, d) for d in distances]
    rows = [[str(place + 1), *(_known(column[place]) for column in columns)] for place in range(len(table))]
    show_table(f"{model}: examination, relative to position 1, by the last click above", ["position", *heads], rows)


def _known(value: float) -> str:
    return f"{value:.4f}" if value == value else ""


def _estimate(log: Path) -> Propensities:
    with stage_bars() as stages:
        info = describe_folder(log, stages=stages)
        if not _marks_random_lists(log) and len(info.click_rate) > 1 and not info.share_at_several_positions:
            raise InputError(
                f"{log}: --randomised needs a log whose lists were shown in a new random order in each session; "
                "each document of this log was always shown at the same position"
            )
        passes = 3
        progress = stages("estimating", passes * info.sessions)

        def blocks() -> Iterator[ClickLog]:
            for block in read_click_log(log):
                yield block
                progress(block.sessions)

        found = estimate_propensities(random_lists(blocks))
    if not found.lists:
        raise InputError(f"{log}: --randomised: no list of this log is marked as in random order")
    return found


def _marks_random_lists(log: Path) -> bool:
    return next(read_click_log(log, rows_at_a_time=1)).randomised is not None


def _read(source: Path) -> Propensities:
    if source.is_file():
        return read_propensities(source)
    found = propensities_of_log(source)
    if found is None:
        file = source / PROPENSITY_FILE if source.is_dir() else source
        raise InputError(
            f"{file}: file not found; `cuolr simulate --randomised-lists` writes it, and --randomised estimates it "
            "from a log whose lists were shown in random order"
        )
    return found


def _truth(source: Path, found: Propensities) -> Propensities:
    """The true values, from the description of a simulated log, which learners do not see."""
    match read_meta(source) if (source / META_FILE).is_file() else {}:
        case {"source": {"context": _}}:  # true values differ between contexts
            return Propensities()
        case {"source": {"click_model": {"name": _} as described}}:
            model = click_model_from(described)
        case _:  # not a simulated log
            return Propensities()
    estimates = [*found.continuation.values(), *([found.examination] if found.examination else [])]
    return true_propensities(model, k=max(len(estimate.values) for estimate in estimates))


def _columns(found: Propensities, truth: Propensities) -> dict[str, Estimate]:
    examination = {"examination": found.examination, "examination (true)": truth.examination}
    continuation = {f"continuation ({method})": e for method, e in {**found.continuation, **truth.continuation}.items()}
    return {name: estimate for name, estimate in examination.items() if estimate is not None} | continuation


def _cell(estimate: Estimate, place: int) -> str:
    value = estimate.values[place] if place < len(estimate.values) else None
    if value is None:
        return "unknown"
    error = estimate.standard_errors[place] if estimate.standard_errors else None
    return f"{value:.4f}" if error is None else f"{value:.4f} ± {2 * error:.4f}"
