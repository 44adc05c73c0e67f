"""The study of coverage."""

import json
from pathlib import Path

import numpy as np
import pytest

from cuolr.policies.linear_policy import LinearPolicy
from studies import gain_coverage
from studies.gain_coverage import Queries, Setting, Size

SMALL = Size(queries=12, documents=10, sessions=40, training_sessions=40, truth=50, steps=1)


def test_swapped_neighbours_change_places_and_no_others() -> None:
    setting = Setting("pbm", "swaps", SMALL, Queries(10))
    data = setting.queries.draw(3, 9)
    production = setting.production(data)
    assert isinstance(production, LinearPolicy)
    plain = production.rank(data.candidates, 10)
    other = gain_coverage.swapped(production, 2).rank(data.candidates, 10)
    assert other[:, [0, 1, 3, 2, 4, 5, 6, 7, 8, 9]].tolist() == plain.tolist()


def test_the_clicks_of_production_are_those_of_its_log() -> None:
    """The closed form against a simulated log of the same queries."""
    for logger in ("swaps", "plackett-luce-1"):
        setting = Setting("dcm", logger, Size(queries=40, documents=12), Queries(12))
        data = setting.queries.draw(40, 9)
        production = setting.production(data)
        expected = setting.production_clicks(data, production)
        assert setting.log(data, production, 3, 500).clicks.sum(axis=1).mean() == pytest.approx(expected, rel=0.03)


@pytest.mark.thorough
def test_a_run_continues_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "coverage.jsonl"
    gain_coverage.main(out, ("pbm",), ("plackett-luce-1",), 1, SMALL)
    first = out.read_text()
    gain_coverage.main(out, ("pbm",), ("plackett-luce-1",), 2, SMALL)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert out.read_text().startswith(first)
    assert [(line["log"], line["policy"]) for line in lines] == [
        (number, policy) for number in (0, 1) for policy in ("better", "worse", "default", "logger")
    ]
    assert all(np.isfinite(line["truth"]) for line in lines)
    assert "by users" in capsys.readouterr().out
