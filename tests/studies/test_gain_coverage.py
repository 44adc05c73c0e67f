"""The study of coverage."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.policies.linear_policy import LinearPolicy
from studies import gain_coverage
from studies.coverage_tables import markdown
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
    assert "8 runs: 2 logs of each of 1 settings." in capsys.readouterr().out


def line_of(truth: float, interval: tuple[float, float], recommendation: str, **more: Any) -> dict[str, Any]:
    """A run; of PBM users and random lists, if not said otherwise."""
    known = {"users": "pbm", "logger": "plackett-luce-1", "log": 0, "policy": "better", "identifiable": True}
    found = {"truth": truth, "interval": interval, "gain": sum(interval) / 2, "recommendation": recommendation}
    return {**known, **found, **more}


def test_the_tables_count_what_was_reached_and_name_what_was_not() -> None:
    runs = [line_of(0.08, (0.02, 0.1), "ship", log=number) for number in range(45)]
    runs += [
        line_of(0.08, (-0.01, 0.2), "test", log=45),
        line_of(-0.01, (0.002, 0.01), "ship", log=45, policy="worse"),
        line_of(0.0, (-0.5, 0.5), "keep", logger="swaps", users="trust", identifiable=False),
    ]
    text = "\n".join(markdown(runs))
    assert "48 runs: 1 to 46 logs of each of 2 settings." in text
    # 46 of 47 intervals of identifiable logs, 47 of 48 in all, 1 of 2 wrong recommendations, 45 of 46 large gains.
    assert "| PBM | 46 of 47 (88.7%–99.9%) | 46 of 47 (88.7%–99.9%) | 1 of 1 (2.5%–100.0%) | 45 of 46" in text
    assert "| trust bias | – | 1 of 1 (2.5%–100.0%) | 0 of 1 (0.0%–97.5%) | – |" in text
    assert "| **all** | 46 of 47 (88.7%–99.9%) | 47 of 48 (88.9%–99.9%) | 1 of 2 (1.3%–98.7%) | 45 of 46" in text
    assert "without the first 2 logs: 43 of 44" in text
    assert "Intervals without the truth: 1.\n" in text
    assert text.count("| PBM | plackett-luce-1 | 46 | worse | -1.0% | ship, +0.6% (+0.2% to +1.0%) |") == 2
    assert "| PBM | plackett-luce-1 | 46 | better | +8.0% | test, +9.5% (-1.0% to +20.0%) |" in text
    few = "\n".join(markdown(runs[-1:]))
    assert "| trust bias | swaps | 1 | better | +0.0% | keep, +0.0% (-50.0% to +50.0%) |" in few
