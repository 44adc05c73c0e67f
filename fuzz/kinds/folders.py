"""Folders that cuolr wrote: logs, results and their packed form, checkpoints; and files that people write for it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import tomli_w
import torch

from cuolr.clicks.click_model import read_click_model
from cuolr.clicks.fitting.fit_model import fit_click_model
from cuolr.clicks.fitting.simulated_users import load_users, save_users
from cuolr.config import to_dict
from cuolr.errors import InputError
from cuolr.examination.propensities import Estimate, Propensities, read_propensities, save_propensities
from cuolr.experiments.built_in import BUILT_IN
from cuolr.experiments.packed_results import read_packed, write_packed
from cuolr.experiments.report.report_folder import numbers, render
from cuolr.experiments.report.summary import summarise
from cuolr.experiments.results import Results, result_to_json
from cuolr.experiments.results_folder import read_results
from cuolr.experiments.spec_file import read_experiment
from cuolr.experiments.tune import search_spaces
from cuolr.files import is_verifying, unverified
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.counting import count_chunks
from cuolr.logs.log_folder import load_click_log, read_meta, save_click_log
from cuolr.logs.log_meta import described
from cuolr.training.run_folder import load_checkpoint, save_checkpoint
from fuzz.damage.arrays import NPY, SAFETENSORS
from fuzz.damage.bytes import BYTES
from fuzz.damage.tables import PARQUET
from fuzz.damage.text import TEXT
from fuzz.damage.trees_of_values import JSON, TOML
from fuzz.kinds.kind import Kind, hash_of, hash_of_log
from fuzz.kinds.tables import click_table, feature_table
from tests.experiments.made_up import table1_like, write_made_up
from tests.small_log import counted_log, small_log

NO_LUCK = "no luck"
SOURCE = {"merged": [{"sessions_sha256": "a", "sessions": 3, "source": {"deletions": [{"sessions_sha256": "b"}]}}]}
USERS = {"name": "pbm", "examination": [1.0, 0.7, 0.5, 0.3], "noise": 0.1}


def make_logs(folder: Path) -> None:
    """Sessions, counted lists and documents, and an imported log with a recipe of its features."""
    import cuolr

    save_click_log(small_log(), folder / "sessions")
    save_click_log(counted_log(), folder / "counted")
    save_click_log(count_chunks([small_log()], by="document"), folder / "counted by document")
    log = cuolr.import_log(click_table(), feature_table(), context=["device"])
    save_click_log(replace(log, timestamp=np.arange(len(log))), folder / "imported", SOURCE)


def read_log(folder: Path) -> str:
    """The sessions and their documents, and what a log that is made from this one records of it."""
    json.dumps(described(folder, read_meta(folder)), indent=2)
    return hash_of_log(load_click_log(folder, documents=True))


def made_up_results(folder: Path) -> Results:
    """Results of some cells."""
    grid = [{"method": ["LOGGING", "naive"], "click_model": ["pbm"]}]
    return write_made_up(
        folder,
        table1_like(grid=grid),
        (1, 2),
        queries=5,
        fail=lambda cell: NO_LUCK if cell.method == "naive" and cell.fold == 1 else "",
    )


def make_results(folder: Path) -> None:
    """A folder of results."""
    made_up_results(folder / "results")


def make_packed(folder: Path) -> None:
    """The same in one file."""
    (folder / "packed").mkdir()
    write_packed(made_up_results(folder.parent / "to pack"), folder / "packed" / "results.parquet")


def hash_of_results(results: Results) -> str:
    """A hash of what a report shows, after some of it is made; a damaged cell counts as refused here."""
    damaged = [error for error in results.failed.values() if error != NO_LUCK]
    if damaged and is_verifying():
        raise InputError(damaged[0])
    summary = summarise(results)
    json.dumps(numbers(summary))
    render(summary, [], ["report.json"], "")
    cells = {str(cell): result_to_json(result) for cell, result in results.cells.items()}
    failed = {str(cell): error for cell, error in results.failed.items()}
    return hash_of(to_dict(results.experiment), cells, failed, [str(cell) for cell in results.missing])


def make_checkpoint(folder: Path) -> None:
    """The state of a run."""
    (folder / "run").mkdir()
    state = {
        "settings": {"log": "a", "seed": 1},
        "state": {"step": 3, "w": torch.arange(12.0).reshape(3, 4), "b": [1, (2, "x")]},
    }
    save_checkpoint(folder / "run" / "checkpoint.safetensors", state)


def read_checkpoint(folder: Path) -> str:
    """The state of a run."""
    state = load_checkpoint(folder / "checkpoint.safetensors")
    return hash_of(str(state))


def make_propensities(folder: Path) -> None:
    """Estimated, and given by a person."""
    for name in ("estimated", "given"):
        (folder / name).mkdir()
    estimate = Estimate((1.0, 0.8, None), (0.0, 0.1, None))
    save_propensities(Propensities(estimate, {"mle": estimate}, 5), folder / "estimated" / "propensities.json")
    (folder / "given" / "propensities.json").write_text(json.dumps({"examination": [1, 0.9, 0.7]}))


def make_experiments(folder: Path) -> None:
    """The experiments that come with cuolr."""
    for name in ("demo", "table1", "conservatism", "planning"):
        if name in BUILT_IN:
            (folder / name).mkdir()
            (folder / name / "experiment.toml").write_bytes(BUILT_IN[name].read_bytes())


def make_users(folder: Path) -> None:
    """A click model."""
    (folder / "users").mkdir()
    (folder / "users" / "users.toml").write_text(tomli_w.dumps(USERS))


def make_fitted_users(folder: Path) -> None:
    """Click models fitted to a log, with the parameters of its documents."""
    patterns = ClickPatterns.of(small_log())
    for name in ("pbm", "ubm", "dbn"):
        save_users(fit_click_model(name, patterns), patterns, folder / name / "users.toml")


def read_fitted_users(folder: Path) -> str:
    """The click model and its parameters for the documents of a log."""
    users = load_users(folder / "users.toml", small_log().candidates)
    return hash_of(str(read_click_model(folder / "users.toml")), users.known, *map(str, sorted(users.values.items())))


def make_search_spaces(folder: Path) -> None:
    """What to tune."""
    (folder / "spaces").mkdir()
    spaces = {"naive": {"training.steps": [10, 20]}, "sac": {"learner.entropy_weight": [0.1, 0.5]}}
    (folder / "spaces" / "spaces.toml").write_text(tomli_w.dumps(spaces))


def in_a_hurry(kind: Kind) -> Kind:
    """The same files, read with --no-verify: damage must be found out without a hash, or do no harm."""

    def read(folder: Path) -> str:
        with unverified():
            return kind.read(folder)

    return replace(kind, name=f"{kind.name}, --no-verify", read=read, checksum=False)


LOG = Kind(
    "click log",
    make_logs,
    read_log,
    {"*.npy": (*NPY, *NPY, *BYTES), "*.json": (*JSON, *JSON, *BYTES), "*.parquet": (*PARQUET, *BYTES)},
    checksum=True,
)
RESULTS = Kind(
    "results",
    make_results,
    lambda folder: hash_of_results(read_results(folder)),
    {"*.json": (*JSON, *JSON, *BYTES), "*/*.json": (*JSON, *JSON, *BYTES)},
    checksum=True,
)
PACKED = Kind(
    "packed results",
    make_packed,
    lambda folder: hash_of_results(read_packed(folder / "results.parquet")),
    {"*": (*PARQUET, *BYTES)},
    checksum=True,
)
KINDS = (
    *(variant for kind in (LOG, RESULTS, PACKED) for variant in (kind, in_a_hurry(kind))),
    Kind("checkpoint, damaged", make_checkpoint, read_checkpoint, {"*": (*SAFETENSORS, *BYTES)}, checksum=True),
    Kind(
        "propensities, JSON",
        make_propensities,
        lambda folder: hash_of(str(read_propensities(folder / "propensities.json"))),
        {"*": (*JSON, *JSON, *BYTES)},
    ),
    Kind(
        "experiment, TOML",
        make_experiments,
        lambda folder: hash_of(to_dict(read_experiment(str(folder / "experiment.toml")))),
        {"*": (*TOML, *TOML, *TEXT, *BYTES)},
    ),
    Kind(
        "click model, TOML",
        make_users,
        lambda folder: hash_of(str(read_click_model(folder / "users.toml"))),
        {"*": (*TOML, *TOML, *TEXT, *BYTES)},
    ),
    Kind(
        "fitted click model, TOML and parquet",
        make_fitted_users,
        read_fitted_users,
        {"*.toml": (*TOML, *TOML, *TEXT, *BYTES), "*.parquet": (*PARQUET, *BYTES)},
    ),
    Kind(
        "search spaces, TOML",
        make_search_spaces,
        lambda folder: hash_of(str(search_spaces(folder / "spaces.toml"))),
        {"*": (*TOML, *TOML, *TEXT, *BYTES)},
    ),
)
