import json
from pathlib import Path

import pytest

from cuolr.experiments.results_folder import PACKED, read_results
from tests.cli.conftest import Run
from tests.experiments.made_up import table1_like, write_made_up


@pytest.fixture
def results(tmp_path: Path) -> Path:
    experiment = table1_like(measures=["ndcg@10"], grid=[{"method": ["LOGGING", "ORACLE", "naive", "CUOLR(CQL)"]}])
    write_made_up(tmp_path / "results", experiment, (1, 2), queries=30)
    return tmp_path / "results"


def test_a_packed_file_has_the_report_of_the_folder(run: Run, results: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.parquet"
    packed = run("pack", results, file)
    assert packed.status == 0, packed.err
    assert f"wrote {file}: 8 finished cells" in packed.err
    from_folder, from_file = (json.loads(run("report", path, "--json").out) for path in (results, file))
    assert from_file.pop("page") == str(tmp_path / "all-report" / "report.html")
    assert from_folder.pop("page") == str(results / "report" / "report.html")
    assert from_file == from_folder


def test_methods_get_their_new_names(run: Run, results: Path, tmp_path: Path) -> None:
    (tmp_path / "names.toml").write_text('[method]\n"CUOLR(CQL)" = "CQL"\n')
    assert run("pack", results, tmp_path / "all.parquet", "--rename", tmp_path / "names.toml").status == 0
    assert "CQL" in {cell.method for cell in read_results(tmp_path / "all.parquet").cells}


def test_a_file_is_replaced_only_if_asked(run: Run, results: Path) -> None:
    assert run("pack", results, results / PACKED).status == 0
    refused = run("pack", results, results / PACKED)
    assert refused.status == 2
    assert "--overwrite" in refused.err
    assert run("pack", results / PACKED, results / PACKED, "--overwrite").status == 0


def test_a_folder_without_results_is_refused(run: Run, tmp_path: Path) -> None:
    refused = run("pack", tmp_path, tmp_path / "all.parquet")
    assert refused.status == 2
    assert "give the results of an experiment" in refused.err
    assert not (tmp_path / "all.parquet").exists()
