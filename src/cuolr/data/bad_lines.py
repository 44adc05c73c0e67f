"""The line of a text file that cannot be read, and why, which polars does not say; None = not found."""

import csv
import json
from typing import IO, Any


def bad_json_line(file: IO[bytes]) -> str | None:
    """The first line that is no JSON object."""
    for number, line in enumerate(file, start=1):
        if line.strip() and not _is_json_object(line):
            found = line[:60].decode(errors="replace").strip()
            return f"line {number}: expected a JSON object in UTF-8, found {found!r}"
    return None


def _is_json_object(line: bytes) -> bool:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        return isinstance(json.loads(line, parse_constant=refuse), dict)
    except (ValueError, RecursionError):
        return False


def bad_csv_line(file: IO[bytes], separator: str) -> str | None:
    """The first line of CSV with too many values, open quotes or bytes that are no text."""
    rows = csv.reader((line.decode() for line in file), delimiter=separator, strict=True)
    first_line = 1
    try:
        width = len(next(rows, []))
        first_line = rows.line_num + 1
        for row in rows:
            if len(row) > width:
                return f"line {first_line}: expected {width} values as in the header, found {len(row)}"
            first_line = rows.line_num + 1
    except UnicodeDecodeError:
        return f"line {rows.line_num + 1}: expected text in UTF-8, found other bytes"
    except csv.Error as error:
        return f"line {first_line}: unbalanced quotes; close them, and double quotes within a value ({error})"
    return None
