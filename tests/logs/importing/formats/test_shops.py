"""Look-alikes of public logs of shops: train.csv of Expedia, and the Open Bandit Dataset."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.examination.randomised import estimate_propensities, random_lists
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions

GAPS = (5, 11)
COMPETITORS = [f"comp{i}_{kind}" for i in range(1, 9) for kind in ("rate", "inv", "rate_percent_diff")]


def write_searches(path: Path, searches: int = 40, hotels: int = 12, seed: int = 1) -> pl.DataFrame:
    """Searches of a few hotels each, in the columns of the data set."""
    rng = np.random.default_rng(seed)
    rows = []
    for search in range(1, searches + 1):
        shown = rng.permutation(200)[:hotels] + 1
        positions = [position for position in range(1, hotels + len(GAPS) + 1) if position not in GAPS][:hotels]
        clicked = rng.integers(hotels)
        randomised = int(rng.random() < 0.3)
        for i, (hotel, position) in enumerate(zip(shown.tolist(), positions, strict=True)):
            booked = int(i == clicked and search % 2 == 0)
            rows.append(
                {
                    "srch_id": search,
                    "date_time": f"2013-04-{1 + search % 28:02} 08:32:15",
                    "site_id": 12,
                    "visitor_location_country_id": 187,
                    "visitor_hist_starrating": "NULL",
                    "prop_country_id": 219,
                    "prop_id": hotel,
                    "prop_starrating": hotel % 5 + 1,
                    "prop_review_score": "NULL" if hotel % 7 == 0 else hotel % 6 / 2 + 1,
                    "prop_location_score2": "NULL" if hotel % 3 == 0 else hotel / 1000,
                    "position": position,
                    "price_usd": 50 + hotel,
                    "srch_destination_id": 8192,
                    "random_bool": randomised,
                    **dict.fromkeys(COMPETITORS, "NULL" if search < searches else 1),
                    "click_bool": int(i == clicked),
                    "gross_bookings_usd": 120.5 if booked else "NULL",
                    "booking_bool": booked,
                }
            )
    table = pl.DataFrame({name: [str(row[name]) for row in rows] for name in rows[0]})
    table.write_csv(path)
    return table


def test_searches_become_lists_with_their_random_order_bookings_and_features(tmp_path: Path) -> None:
    table = write_searches(tmp_path / "train.csv")
    log, report = import_log_with_report(tmp_path / "train.csv", format="expedia")
    assert (report.kept.sessions, report.kept.impressions, report.kept.clicks) == (40, 480, 40)
    assert report.dropped == ()
    assert [found.reason for found in report.repaired] == ["gap in the positions"]
    assert log.page_position is not None
    assert log.page_position[0].tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 13]
    assert log.randomised is not None
    per_search = table.group_by("srch_id", maintain_order=True).agg(pl.col("random_bool").first())
    assert log.randomised.tolist() == [value == "1" for value in per_search["random_bool"]]
    assert log.reward is not None
    assert log.reward.sum(axis=1).tolist() == [1, 5] * 20
    assert "every search of this data set has a click or a booking" in report.notes[0]
    assert report.tables == (str(tmp_path / "train.csv"),)


def test_each_search_is_a_query_and_what_is_known_afterwards_is_no_feature(tmp_path: Path) -> None:
    write_searches(tmp_path / "train.csv", searches=3)
    log, _ = import_log_with_report(tmp_path / "train.csv", format="expedia")
    assert log.candidates.n_queries == 3
    assert log.candidates.feature_names is not None
    names = log.candidates.feature_names.tolist()
    assert names[:4] == ["prop_starrating", "prop_review_score", "prop_location_score2", "price_usd"]
    # NULL everywhere: left out. Nothing of the outcome, nothing that only names.
    assert not {"visitor_hist_starrating", "gross_bookings_usd", "site_id", "position", "random_bool"} & set(names)


def test_missing_features_stay_missing(tmp_path: Path) -> None:
    table = write_searches(tmp_path / "train.csv", searches=3)
    log, _ = import_log_with_report(tmp_path / "train.csv", format="expedia")
    assert log.candidates.feature_names is not None
    for name in ("prop_location_score2", "comp1_rate"):
        column = log.candidates.features[:, log.candidates.feature_names.tolist().index(name)]
        assert 0 < np.isnan(column).sum() == table[name].eq("NULL").sum()


def test_a_hotel_twice_in_a_search_drops_the_search(tmp_path: Path) -> None:
    table = write_searches(tmp_path / "train.csv")
    twice = table.with_columns(
        prop_id=pl.when(pl.int_range(pl.len()) == 1).then(pl.col("prop_id").first()).otherwise("prop_id")
    )
    twice.write_csv(tmp_path / "train.csv")
    _, report = import_log_with_report(tmp_path / "train.csv", None, ImportOptions(max_dropped=0.1), "expedia")
    assert [(found.reason, found.amounts.sessions) for found in report.dropped] == [("document twice", 1)]


def test_the_file_without_clicks_is_refused(tmp_path: Path) -> None:
    write_searches(tmp_path / "train.csv").drop("click_bool", "position").write_csv(tmp_path / "test.csv")
    with pytest.raises(
        InputError, match=r"test\.csv: expected train\.csv of .*; columns missing: position, click_bool"
    ):
        import_log_with_report(tmp_path / "test.csv", format="expedia")


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
