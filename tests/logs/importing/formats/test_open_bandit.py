"""A look-alike of the Open Bandit Dataset: a row per impression in one of three slots, with its propensity."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.examination.randomised import estimate_propensities, random_lists
from cuolr.logs.importing.import_log import import_log_with_report


def write_campaign(folder: Path, policy: str, rows: int = 3_000, items: int = 10, seed: int = 1) -> Path:
    """The log of campaign "all" under a policy; the slots are examined with 1, 0.5 and 0.25."""
    rng = np.random.default_rng(seed)
    weights = np.ones(items) if policy == "random" else np.arange(1, items + 1)
    chances = weights / weights.sum()
    item, slot = rng.choice(items, rows, p=chances), rng.integers(0, 3, rows)
    click = rng.random(rows) < np.array([1, 0.5, 0.25])[slot] * 0.6
    path = folder / policy / "all" / "all.csv"
    path.parent.mkdir(parents=True)
    pl.DataFrame(
        {
            "": np.arange(rows),
            "timestamp": [f"2019-11-24 00:00:{i % 60:02}.{i % 1000:03}000+00:00" for i in range(rows)],
            "item_id": item,
            "position": slot + 1,
            "click": click.astype(int),
            "propensity_score": chances[item],
            "user_feature_0": ["81ce123cbb5bd8ce818f60fb3586bba5"] * rows,
            "user-item_affinity_0": np.zeros(rows),
        }
    ).write_csv(path)
    return path


def write_items(folder: Path, items: int = 10) -> Path:
    path = folder / "item_context.csv"
    pl.DataFrame(
        {
            "": range(items),
            "item_id": range(items),
            "item_feature_0": np.linspace(-0.5, 0.5, items),
            "item_feature_1": ["a" if i % 2 else "b" for i in range(items)],
        }
    ).write_csv(path)
    return path


def test_rows_become_lists_of_one_item_at_its_position(tmp_path: Path) -> None:
    files = [write_campaign(tmp_path, "random"), write_campaign(tmp_path, "bts")]
    log, report = import_log_with_report([*files, write_items(tmp_path)], format="open-bandit")
    assert (log.sessions, log.k, report.dropped) == (6_000, 1, ())
    assert log.page_position is not None
    assert set(log.page_position[:, 0].tolist()) == {0, 1, 2}
    assert log.randomised is not None
    assert log.randomised.tolist() == [True] * 3_000 + [False] * 3_000
    assert log.logging_propensity is not None
    assert log.logging_propensity[0, 0] == pytest.approx(0.1)
    assert report.notes[0].startswith("assumed: each row is a list of its own")


def test_items_have_the_features_of_the_context_and_a_column_for_each_category(tmp_path: Path) -> None:
    log, _ = import_log_with_report([write_campaign(tmp_path, "random"), write_items(tmp_path)], format="open-bandit")
    assert (log.candidates.query_ids.tolist(), log.candidates.n_documents) == (["all"], 10)
    assert log.candidates.feature_names is not None
    assert log.candidates.feature_names.tolist() == ["item_feature_0", "item_feature_1=a", "item_feature_1=b"]
    assert (log.candidates.features[:, 1] + log.candidates.features[:, 2] == 1).all()


def test_examination_of_the_slots_comes_from_the_random_policy(tmp_path: Path) -> None:
    log, _ = import_log_with_report(write_campaign(tmp_path, "random", rows=20_000), format="open-bandit")
    examination = estimate_propensities(random_lists(lambda: [log])).examination
    assert examination is not None
    for value, error, truth in zip(examination.values, examination.standard_errors, (1, 0.5, 0.25), strict=True):
        assert value is not None
        assert error is not None
        assert abs(value - truth) <= 4 * error + 1e-9


def test_items_alone_are_no_log(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the log of a campaign"):
        import_log_with_report(write_items(tmp_path), format="open-bandit")
