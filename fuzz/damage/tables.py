"""Damage to Parquet and Feather files: footers that claim something else, and tables with other columns."""

import io
from typing import Any

import polars as pl

from fuzz.cases import Choices
from fuzz.damage import Damage
from fuzz.damage.bytes import EXTREMES

MAGIC, FEATHER_MAGIC = b"PAR1", b"ARROW1"
TYPES: tuple[Any, ...] = (
    pl.String, pl.Int8, pl.UInt64, pl.Float32, pl.Boolean, pl.Date, pl.Datetime("us"), pl.Duration("ms"), pl.Time,
    pl.Categorical, pl.Binary, pl.List(pl.Int64), pl.Array(pl.Float64, 2), pl.Decimal(20, 2), pl.Null,
)  # fmt: skip
CELLS: tuple[Any, ...] = (
    None, 0, 1, -1, 2, 2**31, 2**62, float("nan"), float("inf"), 1e308, "", "a", "\0", "x" * 5_000, "=1+1",
    True, [], [1], b"\xff",
)  # fmt: skip


def change_footer_number(content: bytes, choices: Choices) -> bytes:
    """A number in the footer of a Parquet file, such as that of rows, is an extreme one; the footer's length fits."""
    if content[-4:] != MAGIC or len(content) < 12:
        return content
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:-8]
    if start < 0 or not footer:
        return content
    place = choices.below(len(footer))
    number = _varint(choices.one_of(EXTREMES))
    footer = footer[:place] + number + footer[place + choices.one_of((1, len(number))) :]
    return content[:start] + footer + len(footer).to_bytes(4, "little") + MAGIC


def change_page_number(content: bytes, choices: Choices) -> bytes:
    """A number in one of the first page headers of a Parquet file is an extreme one."""
    place = 4 + choices.below(min(len(content), 60))
    number = _varint(choices.one_of(EXTREMES))
    return content[:place] + number + content[place + len(number) :]


def change_kind(content: bytes, choices: Choices) -> bytes:
    """A field in the footer or in one of the first page headers of a Parquet file is of another kind."""
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    if content[-4:] != MAGIC or not 4 <= start < len(content) - 8:
        return content
    first, last = choices.one_of(((4, min(64, start)), (start, len(content) - 8)))
    place = first + choices.below(last - first)
    changed = bytearray(content)
    changed[place] = changed[place] & 0xF0 | choices.below(16)
    return bytes(changed)


def change_header_number(content: bytes, choices: Choices) -> bytes:
    """A number in the footer of a Feather file, or in the header of its first batch, is an extreme one."""
    if content[-6:] != FEATHER_MAGIC or len(content) < 24:
        return content
    footer = len(content) - 10 - int.from_bytes(content[-10:-6], "little")
    size = choices.one_of((2, 4, 8))
    first, last = choices.one_of(((8, min(1_500, len(content) - 10)), (max(footer, 8), len(content) - 10)))
    place = (first + choices.below(last - first)) // size * size
    number = choices.one_of(EXTREMES) % (1 << 8 * size)
    return content[:place] + number.to_bytes(size, "little") + content[place + size :]


def nest_column(content: bytes, choices: Choices) -> bytes:
    """A column of the table is within lists, within lists, and so on."""
    is_parquet = content[:4] == MAGIC
    try:
        table = pl.read_parquet(io.BytesIO(content)) if is_parquet else pl.read_ipc(io.BytesIO(content))
        name = choices.one_of(table.columns or [""])
        nested = table[name].head(3)
        for _ in range(choices.one_of((1, 2, 40, 99, 101, 150))):
            nested = nested.implode()
        return in_format(pl.DataFrame({**table.head(1).drop(name).to_dict(), name: nested}), is_parquet)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, TypeError, ValueError):
        return content


def change_column(content: bytes, choices: Choices) -> bytes:
    """A column of the table is of another type, has other values, another name, or is missing."""
    is_parquet = content[:4] == MAGIC
    try:
        table = pl.read_parquet(io.BytesIO(content)) if is_parquet else pl.read_ipc(io.BytesIO(content))
        changed = _changed(table, choices)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, TypeError, ValueError, OverflowError):
        return content
    return in_format(changed, is_parquet)


def in_format(table: pl.DataFrame, is_parquet: bool) -> bytes:
    """The table as a file."""
    written = io.BytesIO()
    if is_parquet:
        table.write_parquet(written)
    else:
        table.write_ipc(written)
    return written.getvalue()


def _changed(table: pl.DataFrame, choices: Choices) -> pl.DataFrame:
    name = choices.one_of(table.columns or [""])
    column = table[name]
    match choices.below(8):
        case 0:
            return table.with_columns(column.cast(choices.one_of(TYPES), strict=False))
        case 1:
            return table.with_columns(pl.Series(name, [choices.one_of(CELLS)] * len(table)))
        case 2:
            values = column.to_list()
            if values:
                values[choices.below(len(values))] = choices.one_of(CELLS)
            return table.with_columns(pl.Series(name, values))
        case 3:
            return table.drop(name)
        case 4:
            return table.rename({name: choices.one_of(("", "a", "click", "doc_id", name.upper(), "é\0"))})
        case 5:
            return table.slice(choices.below(len(table) + 1))
        case 6:
            return pl.concat([table, table[: 1 + choices.below(5)]])
        case _:
            return table.with_columns(column.shuffle(seed=choices.below(100)))


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first, as Thrift's compact protocol has it."""
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


PARQUET: tuple[Damage, ...] = (
    change_footer_number, change_footer_number, change_page_number, change_kind, change_column, nest_column,
)  # fmt: skip
FEATHER: tuple[Damage, ...] = (change_header_number, change_header_number, change_column, nest_column)
