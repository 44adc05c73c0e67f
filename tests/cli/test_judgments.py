import json
from pathlib import Path

import polars as pl
import pytest

from cuolr.logs.log_folder import save_click_log
from tests.cli.conftest import Run
from tests.small_log import small_log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of six queries in lists of random order."""
    save_click_log(small_log(400), tmp_path / "LOG")
    return tmp_path / "LOG"


def test_judgments_are_written_and_what_they_leave_out_is_said(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "judgments.parquet"
    result = run("judgments", log, "--out", out, "--min-examinations", 30)
    assert (result.status, result.out) == (0, "")
    table = pl.read_parquet(out)
    assert (table["examinations"] >= 30).all()
    wrote, left_out, *_ = result.err.splitlines()
    assert wrote == f"wrote {out}: {len(table)} documents of {table['query_id'].n_unique()} queries, ratings 0-1"
    assert left_out.endswith("documents have fewer than 30 expected examinations: left out")


@pytest.mark.parametrize(
    ("name", "flags", "file_format", "scale"),
    [
        ("j.json", (), "workbench", "0-1"),
        ("j.csv", (), "table", "0-1"),
        ("j.csv", ("--format", "quepid"), "quepid", "0-3"),
        ("j.qrels", (), "qrels", "0-3"),
        ("j.txt", ("--format", "qrels", "--scale", "0-4"), "qrels", "0-4"),
    ],
)
def test_the_format_and_the_scale_go_by_the_name_and_the_flags(
    run: Run, log: Path, tmp_path: Path, name: str, flags: tuple[str, ...], file_format: str, scale: str
) -> None:
    result = run("judgments", log, "--out", tmp_path / name, *flags, "--json")
    assert result.status == 0, result.err
    found = json.loads(result.out)
    assert (found["format"], found["scale"], found["topics"]) == (file_format, scale, None)
    assert found["queries"] == 6
    assert (tmp_path / name).stat().st_size > 0


def test_what_cannot_be_written_is_refused_before_any_work(run: Run, log: Path, tmp_path: Path) -> None:
    def error(*arguments: object) -> str:
        result = run("judgments", log, *arguments)
        assert (result.status, result.out) == (2, "")
        return result.err

    assert "expected a name that ends in" in error("--out", tmp_path / "j.txt")
    assert error("--out", tmp_path / "j.qrels", "--scale", "0-1") == (
        "error: --scale 0-1: qrels hold whole numbers; use 0-3 or 0-4\n"
    )
    assert "lower --min-examinations" in error("--out", tmp_path / "j.json", "--min-examinations", 1e6)
    assert not (tmp_path / "j.json").exists()
    (tmp_path / "j.csv").write_text("mine")
    assert "already exists" in error("--out", tmp_path / "j.csv")
    assert run("judgments", log, "--out", tmp_path / "j.csv", "--overwrite").status == 0
