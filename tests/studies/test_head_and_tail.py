"""The study of head and tail queries."""

import json
from pathlib import Path

import pytest

from studies import head_and_tail, shop
from studies.head_and_tail import pooled, verdict


@pytest.mark.parametrize(
    ("difference", "error", "expected"),
    [(-0.0017, 0.002, "non-inferior"), (-0.0018, 0.002, "undecided"), (-0.0084, 0.002, "inferior")],
)
def test_bounds_are_compared_with_the_margin(difference: float, error: float, expected: str) -> None:
    """1.645 · .002 = .00329."""
    assert verdict(difference, error) == expected


def test_seeds_of_a_cell_are_pooled() -> None:
    assert pooled([[0.01, 0.003]]) == (0.01, 0.003)
    assert pooled([[0.01, 0.03], [0.01, 0.04]]) == pytest.approx((0.01, 0.05 / 2)), "the error of queries"
    assert pooled([[0.01, 0.003], [0.03, 0.004]]) == pytest.approx((0.02, 0.01)), "the error between seeds"


@pytest.mark.thorough
def test_a_run_continues_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "grid.jsonl"
    cells = {"queries": (30,), "sessions": (2,), "loggers": ("weak",), "users": ("pbm",), "steps": 1}
    head_and_tail.main(out, seeds=1, **cells)  # type: ignore[arg-type]
    first = out.read_text()
    head_and_tail.main(out, seeds=1, **cells)  # type: ignore[arg-type]
    assert out.read_text() == first
    assert json.loads(first)["cell"] == [30, 2, "weak", "pbm"]
    assert "against LOGGING" in capsys.readouterr().out


def test_the_shop_is_ranked_best_by_its_attractiveness() -> None:
    """The production ranker is at about .7, as one that knows three of eight features should be."""
    fresh = shop.Shop.draw(200, seed=1, stream=2)
    assert 0.6 < fresh.ndcg(fresh.production()).mean() < 0.8


def test_the_log_of_the_shop_is_of_production() -> None:
    drawn = shop.Shop.draw(50, seed=1, stream=1)
    log = drawn.log("pbm", 300, seed=1)
    assert log.ranking.tolist() == drawn.production().rank(drawn.candidates, shop.K)[log.query].tolist()
    assert 0 < log.clicks.mean() < 0.5
