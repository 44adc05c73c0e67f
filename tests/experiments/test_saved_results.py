"""The results under docs/results: small, linked, and found as finished by the code as it is."""

import re
import shlex
from pathlib import Path

import pytest

from cuolr.experiments.built_in import BUILT_IN
from cuolr.experiments.fingerprints import digests_from, fingerprinted_name
from cuolr.experiments.report.summary import summarise
from cuolr.experiments.report.table_files import markdown
from cuolr.experiments.results import Results
from cuolr.experiments.results_folder import PACKED, read_results
from cuolr.experiments.spec import Experiment
from cuolr.experiments.spec_file import read_experiment

SAVED = Path(__file__).parents[2] / "docs" / "results"
FOLDERS = sorted(file.parent.name for file in SAVED.glob(f"*/{PACKED}"))
# Made by an earlier version, with other settings: the first run of `wins`, and cells of `factored` with a minimum
# weight of the logging policy.
OUTDATED = {
    "wins-seed-11-mq2008",
    "wins-mq2008",
    "wins-web10k-like",
    "wins-yahoo-like",
    "wins-whole-grid-mq2008",
    "wins-whole-grid-web10k-like",
    "prior-10-mq2008",
    "prior-10-web10k-like",
    "prior-10-yahoo-like",
    "fold-by-fold-mq2008",
    "ablation-web10k-like",
    "without-labels-mq2008",
}


def experiment_of(results: Results) -> Experiment:
    """The experiment as it would be run now, by the name or file in the command that made the results."""
    name = shlex.split(str(results.data["command"]))[2]
    return read_experiment(name if name in BUILT_IN else str(SAVED / Path(name).name))


def test_there_are_few_files_and_they_are_small() -> None:
    files = [file for file in SAVED.rglob("*") if file.is_file()]
    assert len(FOLDERS) >= 20
    assert len(files) <= 150
    assert sum(file.stat().st_size for file in files) <= 6_000_000


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder not in OUTDATED])
def test_an_experiment_finds_its_saved_cells_as_finished(folder: str) -> None:
    results = read_results(SAVED / folder)
    digests = digests_from(results.data["digests"])
    experiment = experiment_of(results)
    names = {cell: fingerprinted_name(experiment, cell, digests) for cell in experiment.cells(results.data["folds"])}
    assert names == dict(results.description.names)
    assert results.cells


@pytest.mark.thorough
@pytest.mark.parametrize("file", sorted(SAVED.glob("*/tables.md")), ids=lambda file: file.parent.name)
def test_the_tables_beside_results_are_made_from_them(file: Path) -> None:
    assert markdown(summarise(read_results(file.parent))) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(SAVED.glob("*.md")), ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
