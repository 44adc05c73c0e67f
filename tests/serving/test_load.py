"""The load test itself, short."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.serve_load import put_load
from cuolr.logs.importing.import_log import import_log_with_report
from tests.serving.small_service import linear_model


@pytest.mark.thorough
def test_every_call_is_answered_and_written_down(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0, -1.0, 0.5])
    load = asyncio.run(put_load(model, tmp_path / "LOG", rate=50, seconds=2, features=3))
    assert (len(load.latencies), load.errors) == (100, [])
    assert len(import_log_with_report(tmp_path / "LOG", format="cuolr-serve")[0]) == 100


@pytest.mark.thorough
def test_refused_calls_are_errors(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0])
    load = asyncio.run(put_load(model, tmp_path / "LOG", rate=50, seconds=0.2, features=3))
    assert [error[:12] for error in load.errors] == ["HTTP/1.1 422"] * 10
