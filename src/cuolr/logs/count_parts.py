"""Counting Parquet parts, in this process or as tasks of a Ray cluster: counts add up to the same integers."""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from cuolr.data.candidate_store import load_candidates
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import IDS
from cuolr.logs.counting import OF_LISTS, CountedBy, added, counted_of, frames_of
from cuolr.logs.log_folder import read_meta, write_click_log
from cuolr.logs.log_meta import COUNTED
from cuolr.logs.ray_cluster import connected, first_line
from cuolr.logs.session_files import (
    Part,
    SessionForm,
    fetched,
    merged_frames,
    part_files,
    read_parts,
    read_session_file,
    rows_of,
)
from cuolr.progress import Progress, Stages, no_stages

# How often parts are counted again if their process or node is lost.
RETRIES = 3
# Tasks for each core of a cluster: few, so that workers add up counts, and enough that none waits long for the last.
TASKS_PER_CORE = 4
# Columns that are not counted.
UNUSED: dict[CountedBy, tuple[str, ...]] = {"list": IDS, "document": (*IDS, *OF_LISTS)}


def count_parts(
    log: Path,
    paths: Sequence[Part],
    out: Path,
    by: CountedBy = "list",
    ray: str | None = None,
    overwrite: bool = False,
    stages: Stages = no_stages,
) -> ClickLog:
    """Count the sessions of Parquet files for the documents of a log; memory grows with the rows of the result only.

    Args:
        log: A log of sessions; its own are not counted.
        paths: Files with the columns of its `sessions.parquet`, or folders of them; addresses such as
            `s3://bucket/day` are read by fsspec.
        out: The folder of the counted log.
        by: What a row is.
        ray: Address of a Ray cluster whose nodes see the log and these paths; None = in this process.
        overwrite: Whether an existing log is replaced.
        stages: Receives the parts that were counted so far.
    """
    form = _form(log)
    files = part_files(paths)
    example = _example(files, form, by)
    progress = stages("counting parts", len(files))
    frames = _here(files, form, by, progress) if ray is None else _on_cluster(ray, log, files, by, progress)
    counted = counted_of(frames, by, example)
    source = {name: value for name, value in read_meta(log).get("source", {}).items() if name != COUNTED}
    described = {"folder": str(log), "parts": len(files), "sessions": counted.sessions, "source": {}}
    write_click_log(out, [counted], {**source, COUNTED: described}, overwrite)
    return counted


def count_files(log: Path, files: Sequence[Part], by: CountedBy) -> pl.DataFrame | None:
    """The counts of some files, as `counted_of` takes them; on whatever node. None if they have no sessions."""
    frames = frames_of(read_parts(files, _form(log), UNUSED[by]), by)
    if (first := next(frames, None)) is None:
        return None
    return merged_frames(itertools.chain([first], frames), added)


def _example(files: Sequence[Part], form: SessionForm, by: CountedBy) -> ClickLog:
    """The first session."""
    for each in files:
        with fetched(each) as file:
            if rows_of(file):
                return next(read_session_file(file, form, 1, without=UNUSED[by]))
    raise InputError(f"{files[0]}: expected at least one session in these parts, found none")


def _form(log: Path) -> SessionForm:
    meta = read_meta(log)
    if meta["aggregated"] or meta["counted"]:
        raise InputError(f"{log}: expected a log of sessions, whose documents the parts have")
    return SessionForm(load_candidates(log), meta["k"])


def _here(files: Sequence[Part], form: SessionForm, by: CountedBy, progress: Progress) -> Iterator[pl.DataFrame]:
    def told() -> Iterator[Part]:
        for file in files:
            yield file
            progress(1)

    return frames_of(read_parts(told(), form, UNUSED[by]), by)


def _on_cluster(
    address: str, log: Path, files: Sequence[Part], by: CountedBy, progress: Progress
) -> Iterator[pl.DataFrame]:
    """The counts of each task's parts as they come; a task whose process or node is lost is done again."""
    with connected(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(count_files)
        cores = int(ray.cluster_resources().get("CPU", 1))
        places = [file.resolve() if isinstance(file, Path) else file for file in files]
        size = math.ceil(len(places) / (TASKS_PER_CORE * cores))
        waiting = [places[start : start + size] for start in range(0, len(places), size)]
        under_way = dict[Any, int]()
        while waiting or under_way:
            while waiting and len(under_way) <= cores:
                parts = waiting.pop()
                under_way[task.remote(log.resolve(), parts, by)] = len(parts)
            done, _ = ray.wait(list(under_way))
            for each in done:
                if (counts := _result(ray, each)) is not None:
                    yield counts
                progress(under_way.pop(each))


def _result(ray: Any, task: Any) -> pl.DataFrame | None:
    try:
        frame: pl.DataFrame | None = ray.get(task)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, InputError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise InputError(f"ray: a part was lost {RETRIES + 1} times, the last time by {first_line(error)}") from None
    return frame
