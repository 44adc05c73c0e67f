"""A look-alike of train.csv: its columns, `NULL`, empty positions 5 and 11, searches with a click or a booking."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.errors import InputError
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
