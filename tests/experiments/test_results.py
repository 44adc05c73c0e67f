"""Results of experiments; those under docs/results are small, linked, and found as finished by the code as it is."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from cuolr.errors import InputError
from cuolr.experiments.built_in import BUILT_IN
from cuolr.experiments.fingerprints import digests_from, fingerprinted_name
from cuolr.experiments.report.summary import summarise
from cuolr.experiments.report.table_files import markdown
from cuolr.experiments.results import FORMAT, Results, name_of
from cuolr.experiments.results_folder import PACKED, ResultsFolder, read_results
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import read_experiment
from cuolr.files import unverified
from tests.experiments.made_up import table1_like, write_made_up


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_made_up(tmp_path, table1_like(grid=[{"method": ["naive"]}]), (1,), queries=5)
    return tmp_path


def test_folders_are_made_with_their_first_file(tmp_path: Path) -> None:
    cells = table1_like(grid=[{"method": ["naive"]}])
    write_made_up(tmp_path / "none", cells, (1,), queries=5, skip=lambda cell: True)
    assert [file.name for file in (tmp_path / "none").iterdir()] == ["experiment.json"]
    write_made_up(tmp_path / "failed", cells, (1,), queries=5, fail=lambda cell: "broken")
    assert {file.name for file in (tmp_path / "failed").iterdir()} == {"experiment.json", "failed"}


def without(file: Path, key: str) -> str:
    """As files were written before they had a hash."""
    content = {**json.loads(file.read_text()), "format": "cuolr-results-2"}
    return json.dumps({name: value for name, value in content.items() if name not in (key, "sha256")})


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"format": "other"}), json.dumps({"format": FORMAT})])
def test_a_damaged_result_is_named_and_counts_as_none(folder: Path, content: str) -> None:
    (file,) = (folder / "cells").iterdir()
    assert ResultsFolder(folder).is_finished(file.stem)
    file.write_text(content)
    assert not ResultsFolder(folder).is_finished(file.stem)
    (error,) = read_results(folder).failed.values()
    assert file.name in error


@pytest.mark.parametrize("key", ["measures", "per_query", "validations", "log"])
def test_a_result_that_lacks_something_is_damaged(folder: Path, key: str) -> None:
    (file,) = (folder / "cells").iterdir()
    file.write_text(without(file, key))
    (error,) = read_results(folder).failed.values()
    assert re.search(f"{re.escape(file.name)}: damaged .*{key}", error)


@pytest.mark.parametrize("values", [{}, {"ndcg@10": [0.5]}, {"ndcg@10": ["high"]}])
def test_a_result_without_a_value_for_each_measure_and_query_is_damaged(folder: Path, values: dict[str, Any]) -> None:
    (file,) = (folder / "cells").iterdir()
    content = json.loads(without(file, "sha256"))
    file.write_text(json.dumps({**content, "per_query": {**content["per_query"], **values} if values else {}}))
    (error,) = read_results(folder).failed.values()
    assert f"{file.name}: damaged" in error


def test_a_number_that_was_changed_is_noticed_and_files_without_a_hash_are_read(folder: Path) -> None:
    (file,) = (folder / "cells").iterdir()
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "seconds": 1e9}))
    (error,) = read_results(folder).failed.values()
    assert f"{file.name}: damaged: it does not match its hash" in error
    with unverified():
        assert not read_results(folder).failed
    del content["sha256"]
    file.write_text(json.dumps(content))
    (error,) = read_results(folder).failed.values()
    assert "does not match its hash" in error
    file.write_text(json.dumps({**content, "format": "cuolr-results-2"}))
    assert not read_results(folder).failed


@pytest.mark.parametrize("leave", ["name", "link", "link of a folder"])
def test_no_cell_is_read_from_outside_of_the_folder(folder: Path, leave: str) -> None:
    (file,) = (folder / "cells").iterdir()
    outside = folder / "outside.json"
    file.rename(outside)
    if leave == "link":
        file.symlink_to(outside)
    elif leave == "link of a folder":
        (folder.parent / "elsewhere").mkdir()
        outside.rename(folder.parent / "elsewhere" / file.name)
        (folder / "cells").rmdir()
        (folder / "cells").symlink_to(folder.parent / "elsewhere")
    else:
        described = json.loads(without(folder / "experiment.json", "sha256"))
        described["cells"][0]["name"] = "../outside"
        (folder / "experiment.json").write_text(json.dumps(described))
    (error,) = read_results(folder).failed.values()
    assert "leads out of the folder" in error


def test_no_link_leads_out_of_a_folder_of_results(folder: Path) -> None:
    (cell,) = (folder / "cells").iterdir()
    for name, others in (("results.parquet", cell), ("experiment.json", cell)):
        others.unlink(missing_ok=True)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(folder.parent / "elsewhere")
        problem = f"'{name}' leads out of the folder; expected the file itself in it"
        if name == "results.parquet":  # which is read because a cell is missing
            (error,) = read_results(folder).failed.values()
            assert problem in error
        else:
            with pytest.raises(InputError, match=problem):
                read_results(folder)


@pytest.mark.parametrize("key", ["cells", "data", "versions", "experiment"])
def test_a_damaged_description_is_named(folder: Path, key: str) -> None:
    file = folder / "experiment.json"
    file.write_text(without(file, key))
    with pytest.raises(InputError, match=f"experiment.json: damaged .*{key}"):
        read_results(folder)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"data": {"name": "D", "paper_name": [1]}}, "data.paper_name: expected a text"),
        ({"data": {"name": "D", "queries": [1]}}, "data.queries: expected an object"),
        ({"data": {"name": "D", "queries": {"test": "many"}}}, "data.queries.test: expected a whole number"),
        ({"data": {"name": 3}}, "data.name: expected a text"),
        ({"versions": None}, "versions: expected an object"),
    ],
)
def test_what_a_report_shows_of_the_data_has_the_expected_types(
    folder: Path, changed: dict[str, Any], problem: str
) -> None:
    file = folder / "experiment.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **changed}))
    with unverified(), pytest.raises(InputError, match=rf"experiment.json: {problem}, found"):
        read_results(folder)


@pytest.mark.parametrize(
    "changed",
    [{"seconds": float("nan")}, {"seconds": 1e400}, {"best_step": 10**19}, {"steps": -(10**400)}, {"per_query": 1e308}],
)
def test_numbers_that_no_report_can_compute_with_are_damage(folder: Path, changed: dict[str, Any]) -> None:
    file = next((folder / "cells").glob("*.json"))
    content = json.loads(file.read_bytes())
    if "per_query" in changed:
        changed = {"per_query": {name: [1e308] * len(values) for name, values in content["per_query"].items()}}
    file.write_text(json.dumps({**content, **changed}))
    with unverified():
        (error,) = read_results(folder).failed.values()
    assert "damaged (ValueError: expected numbers up to 1e+15)" in error


def test_results_that_cannot_be_compared_with_the_others_are_damaged(tmp_path: Path) -> None:
    write_made_up(tmp_path, table1_like(grid=[{"method": ["naive", "ipw", "sac"]}]), (1,), queries=5)
    first, _, third = sorted((tmp_path / "cells").glob("*.json"))
    content = json.loads(first.read_bytes())
    name = next(iter(content["measures"]))
    for part in ("measures", "per_query"):
        content[part]["other"] = content[part].pop(name)
    first.write_text(json.dumps(content))
    content = json.loads(third.read_bytes())
    content["per_query"] = {measure: values[:3] for measure, values in content["per_query"].items()}
    third.write_text(json.dumps(content))
    with unverified():
        results = read_results(tmp_path)
    assert len(results.cells) == 1
    assert sorted(error.partition(";")[0] for error in results.failed.values()) in (
        ["damaged: has 3 queries, and others of its fold have 5", f"damaged: has no {name}"],
        ["damaged: has 5 queries, and others of its fold have 3", f"damaged: has no {name}"],
    )
    assert markdown(summarise(results))


@pytest.mark.parametrize("change", [{"logging": 1.5}, {"fold": "1"}, {"seed": True}, {"other": 1}])
def test_a_cell_of_other_fields_or_types_is_damaged(folder: Path, change: dict[str, Any]) -> None:
    file = folder / "experiment.json"
    described = json.loads(file.read_text())
    described["cells"][0] |= change
    file.write_text(json.dumps(described))
    with unverified(), pytest.raises(InputError, match=f"experiment.json: damaged .*{next(iter(change))}"):
        read_results(folder)


def test_a_long_name_is_cut_and_still_told_apart(tmp_path: Path) -> None:
    long = "a learner with a name that goes on " * 10
    names = [name_of(Cell(long), {"settings": number}) for number in (1, 2)]
    assert names[0] != names[1]
    (tmp_path / "failed").mkdir()
    for name in names:
        ResultsFolder(tmp_path).fail(name, "too long")
    assert len(list((tmp_path / "failed").iterdir())) == 2


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
