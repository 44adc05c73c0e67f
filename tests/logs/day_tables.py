"""Tables of sessions on several days, for tests of merging and deleting."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.log_folder import save_click_log

DOCUMENTS = 6
KEYS = ["session_id", "position"]


@dataclass(frozen=True)
class Days:
    """A log of several days and the features of its documents.

    Attributes:
        days: The table of each day.
        features: Of all documents.
    """

    days: tuple[pl.DataFrame, ...]
    features: pl.DataFrame

    @property
    def table(self) -> pl.DataFrame:
        """All days."""
        return pl.concat(self.days)

    def features_of(self, day: int) -> pl.DataFrame:
        """The features of the documents of a day only, in another order."""
        shown = self.days[day].select("query_id", "doc_id").unique()
        return self.features.join(shown, on=["query_id", "doc_id"], how="semi").sort("doc_id", "query_id")


def make_days(seed: int, sessions: int = 12, queries: int = 4, days: int = 2, gaps: bool = False) -> Days:
    """Random sessions; each has an id, a time and one of five users."""
    rng = np.random.default_rng(seed)
    tables = []
    for day in range(days):
        rows = []
        for number in range(sessions):
            clock = f"{number % 24:02}:{number // 24 % 60:02}:{number // 1440:02}"
            query = rng.integers(queries)
            position = 1
            for document in rng.permutation(DOCUMENTS)[: rng.integers(1, DOCUMENTS)]:
                rows.append(
                    {
                        "query_id": f"query {query}",
                        "session_id": f"{day}-{number}",
                        "position": position,
                        "doc_id": f"d{document}",
                        "click": int(rng.random() < 0.3),
                        "timestamp": f"2026-11-{day + 1:02}T{clock}Z",
                        "user_id": f"user {number % 5}",
                    }
                )
                position += 1 + int(gaps and rng.random() < 0.2)
        tables.append(pl.DataFrame(rows))
    names = [(query, document) for query in range(queries) for document in range(DOCUMENTS)]
    features = pl.DataFrame(
        {
            "query_id": [f"query {query}" for query, _ in names],
            "doc_id": [f"d{document}" for _, document in names],
            "price": rng.random(len(names)),
            "stock": rng.random(len(names)),
        }
    )
    return Days(tuple(tables), features)


def imported(table: pl.DataFrame, features: pl.DataFrame, **options: object) -> ClickLog:
    return import_log_with_report(table, features, ImportOptions(**options))[0]  # type: ignore[arg-type]


def save_days(days: Days, folder: Path) -> list[Path]:
    paths = []
    for number, table in enumerate(days.days):
        paths.append(folder / f"day {number}")
        save_click_log(imported(table, days.features_of(number)), paths[-1])
    return paths


def rows(log: ClickLog) -> pl.DataFrame:
    """All of a log, with the features of each shown document, whatever the order of sessions and candidates."""
    frame = log.to_frame()
    row, position = np.nonzero(log.where)
    features = log.candidates.features[log.documents[row, position]]
    names = [] if log.candidates.feature_names is None else log.candidates.feature_names.tolist()
    frame = frame.with_columns(pl.Series(name, features[:, i]) for i, name in enumerate(names))
    return frame.select(sorted(frame.columns)).sort(KEYS)
