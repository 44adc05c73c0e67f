"""The rows of a log's tables, not yet read, each with its file and its number."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from cuolr.data.column_kinds import closest_column, other_separator
from cuolr.data.feature_options import ONE_QUERY
from cuolr.data.frames import Table, count_rows, followed, is_path, to_polars
from cuolr.data.tables import ROW, can_be_ids, id_text, in_calendar, read_errors, scan_table
from cuolr.errors import InputError
from cuolr.logs.importing.import_options import (
    IDS,
    NUMBERS,
    OPTIONAL,
    REQUIRED,
    ImportOptions,
    context_columns,
    reward_column,
)
from cuolr.progress import Share

# The number of a row holds the number of its file above these bits.
ROW_BITS = 40


@dataclass(frozen=True)
class LogRows:
    """The known columns of the tables of a log, under our names.

    Attributes:
        parts: The rows, with the same columns and types in each part.
        places: The path of each table, which a row's number refers to; what to call it, if it is none.
        unused: Columns of the first table that are not among the known ones.
    """

    parts: tuple[pl.LazyFrame, ...]
    places: tuple[Path | str, ...]
    unused: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What to call the tables together."""
        return str(self.places[0]) if len(self.places) == 1 else f"{len(self.places)} files"

    @property
    def schema(self) -> pl.Schema:
        """Columns and their types, the same in all parts."""
        return self.parts[0].collect_schema()

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether an unused column seems to have the timestamps, without which a log cannot be divided by time."""
        guess = "" if "timestamp" in self.schema else closest_column("timestamp", self.unused)
        if not guess:
            return ()
        return (f"the log has no timestamps; if column '{guess}' has them, say columns={{'timestamp': '{guess}'}}",)

    @cached_property
    def total(self) -> int:
        """The number of rows in all parts."""
        total = 0
        for part, place in self.scans():
            with read_errors(place):
                total += count_rows(part)
        return total

    def followed(self, part: pl.LazyFrame, progress: Share) -> pl.LazyFrame:
        """A part, with the share of all rows that passed since the last call."""
        total = max(self.total, 1)  # counted before, not within, the reading
        return followed(part, lambda number: progress(number / total))

    def place(self, number: int) -> str:
        """The file of a row, and the row."""
        return f"{self.places[number >> ROW_BITS]}: row {number & ((1 << ROW_BITS) - 1)}"

    def scans(self) -> Iterator[tuple[pl.LazyFrame, Path | str]]:
        """Each part, and what to call it in an error."""
        whole_tables = len(self.parts) == len(self.places)
        for number, part in enumerate(self.parts):
            yield part, self.places[number] if whole_tables else self.name

    def at(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """The rows of these numbers, in their order in the tables."""
        found = []
        for part, place in self.scans():
            with read_errors(place):
                found.append(part.filter(pl.col(ROW).is_in(list(numbers))).collect(engine="streaming"))
        return pl.concat(found).sort(ROW).to_dicts()


def scan_log(table: Table | Sequence[Path | str], options: ImportOptions, features: Sequence[str] = ()) -> LogRows:
    """The known columns of one or more tables.

    Args:
        table: A data frame; or a path or a pattern, or several of them.
        options: How to import.
        features: Columns that are features of the shown documents, and are kept as they are.
    """
    outcomes = (*REQUIRED, *OPTIONAL, *options.columns.values(), *options.reward_weights)
    if known := [name for name in features if name in outcomes]:
        raise InputError([f"column '{name}' cannot be a feature: it says what was shown or clicked" for name in known])
    if isinstance(table, str | Path | list | tuple):
        places: tuple[Path | str, ...] = tuple(find_tables([table] if isinstance(table, str | Path) else table))
        texts = [options.columns.get(name, name) for name in (*IDS, "user_id", *NUMBERS)] + [*features]
        texts += [*options.reward_weights, *options.context]
        scanned = [scan_table(Path(place), text_columns=texts) for place in places]
    else:
        places = ("the table",)
        scanned = [to_polars(table, "the table").lazy().with_row_index(ROW, offset=1)]
    parts = [_known_columns(rows, place, options, features) for rows, place in zip(scanned, places, strict=True)]
    used = {*(options.columns.get(name, name) for name in (*REQUIRED, *OPTIONAL)), *features, *options.context, ROW}
    unused = [name for name in scanned[0].collect_schema() if name not in used | set(options.reward_weights)]
    return LogRows(tuple(_of_one_type(parts, places)), places, tuple(unused))


def find_tables(patterns: Sequence[Path | str]) -> Iterator[Path]:
    """The files that paths and patterns name, those of a pattern by name. A path that exists is no pattern."""
    found: set[Path] = set()
    if not patterns:
        raise InputError("expected files to import, found none")
    for pattern in patterns:
        if not is_path(pattern):
            raise InputError(
                f"expected paths of tables, found an object of type {type(pattern).__name__}; concatenate data frames "
                "to one"
            )
        path = Path(pattern)
        files = [path]
        if not path.exists() and glob.has_magic(str(pattern)):
            files = sorted(Path(name) for name in glob.glob(str(pattern), recursive=True))
            if not files:
                raise InputError(f"{pattern}: no file matches")
        for file in files:
            if file.resolve() in found:
                raise InputError(f"{file}: given twice; give each table once")
            found.add(file.resolve())
            yield file


def _missing(name: str, column: str, found: Sequence[str]) -> str:
    """What to do about a column that a log must have, and the table lacks."""
    guess = closest_column(column, found)
    suggestion = f"columns={{'{name}': '{guess or 'NAME'}'}}"
    if guess:
        return f"column '{column}' is missing (did you mean {suggestion}?)"
    return f"column '{column}' is missing" + (
        f"; if it is called otherwise, say {suggestion}" if column == name else ""
    )


def _known_columns(
    rows: pl.LazyFrame, place: Path | str, options: ImportOptions, features: Sequence[str]
) -> pl.LazyFrame:
    """The row's number and the known columns, ids as text; and the features."""
    with read_errors(place):
        given = rows.drop(ROW).collect_schema().names()
    if options.one_query:
        rows = rows.with_columns(pl.lit(ONE_QUERY).alias(options.columns.get("query_id", "query_id")))
    with read_errors(place):
        schema = rows.drop(ROW).collect_schema()
    if problem := other_separator(given):
        raise InputError(f"{place}: {problem}")
    ours = {name: options.columns.get(name, name) for name in (*REQUIRED, *OPTIONAL)}
    missing = [
        f"{place}: {_missing(name, source, schema.names())}; found: {', '.join(given)}"
        for name, source in ours.items()
        if source not in schema and (name in REQUIRED or name in options.columns)
    ]
    if missing:
        raise InputError(missing)
    if lacking := [name for name in features if name not in schema]:
        found = ", ".join(schema.names())
        raise InputError([f"{place}: feature column '{name}' is missing; found: {found}" for name in lacking])
    if mixed := [name for name in features if schema[name] == pl.Object]:
        raise InputError([f"{place}: feature column '{name}': expected values of one type" for name in mixed])
    weights = options.reward_weights
    weighted = ["reward"] if weights else []
    known = {name: source for name, source in ours.items() if source in schema and name not in weighted}
    types = {name: schema[source] for name, source in known.items()}
    if problems := list(_type_problems(types)):
        raise InputError([f"{place}: {problem}" for problem in problems])
    # Whole numbers as session ids stay numbers, to keep their order.
    as_text = [name for name in (*IDS, "user_id") if name in types]
    as_text = [name for name in as_text if name != "session_id" or not types[name].is_integer()]
    columns = [
        (id_text(source, types[name]) if name in as_text else pl.col(source)).alias(name)
        for name, source in known.items()
    ]
    columns += [reward_column(weights, schema, ours, place).alias(name) for name in weighted]
    columns += context_columns(options.context, schema, place)
    # The codes of categories differ from file to file.
    codes = [name for name in features if isinstance(schema[name], pl.Categorical | pl.Enum)]
    known_rows = rows.select(ROW, *columns, *features).with_columns(pl.col(codes).cast(pl.String))
    if isinstance(time := types.get("timestamp"), pl.Date | pl.Datetime):
        in_year = pl.when(in_calendar("timestamp", time)).then(pl.col("timestamp"))
        return known_rows.with_columns(in_year.alias("timestamp"))
    return known_rows


def _type_problems(types: dict[str, pl.DataType]) -> Iterator[str]:
    for name in NUMBERS:
        dtype = types.get(name, pl.Float64())
        if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.String, pl.Null)):
            yield f"column '{name}': expected numbers, found {dtype}"
    for name in (*IDS, "user_id"):
        if not can_be_ids(types.get(name, pl.String())):
            yield f"column '{name}': expected text or whole numbers, found {types[name]}"
    timestamp = types.get("timestamp", pl.Int64())
    if not (timestamp.is_numeric() or isinstance(timestamp, pl.Date | pl.Datetime | pl.String)):
        yield f"column 'timestamp': expected numbers or dates and times, found {timestamp}"


def _of_one_type(parts: list[pl.LazyFrame], places: Sequence[Path | str]) -> Iterator[pl.LazyFrame]:
    """The tables with the same columns and types, and rows numbered over all of them."""
    if len(parts) == 1:
        yield parts[0]
        return
    schemas = [part.collect_schema() for part in parts]
    for name in OPTIONAL:
        having = [name in schema for schema in schemas]
        if any(having) and not all(having):
            lacking, other = places[having.index(False)], places[having.index(True)]
            raise InputError(f"{lacking}: column '{name}' is missing, which {other} has; expected it in all or none")
    types = {name: _common_type(name, [schema[name] for schema in schemas]) for name in schemas[0] if name != ROW}
    for number, part in enumerate(parts):
        in_all = pl.col(ROW).cast(pl.Int64) + (number << ROW_BITS)
        yield part.select(in_all, *(_cast(name, schemas[number][name], dtype) for name, dtype in types.items()))


def _common_type(name: str, found: Sequence[pl.DataType]) -> pl.DataType:
    if len(set(found)) == 1:
        return found[0]
    if name == "timestamp":
        if all(dtype.is_temporal() for dtype in found):
            return pl.Datetime("us")
        if all(dtype.is_temporal() or dtype == pl.String for dtype in found):
            return pl.String()
        if any(dtype.is_temporal() or dtype == pl.String for dtype in found):
            raise InputError("column 'timestamp': expected numbers in all files, or times in all; found both")
        return pl.Int64() if all(dtype.is_integer() for dtype in found) else pl.Float64()
    if name not in (*REQUIRED, *OPTIONAL) and all(dtype.is_numeric() for dtype in found):
        return pl.Float64()
    if name == "session_id" and all(dtype.is_integer() and dtype != pl.UInt64 for dtype in found):
        return pl.Int64()
    return pl.String()


def _cast(name: str, found: pl.DataType, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if isinstance(found, pl.Datetime) and found.time_zone is not None and dtype != found:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column if found == dtype else column.cast(dtype)
