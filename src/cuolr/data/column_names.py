"""Columns of a table that are called otherwise, or not separated by commas."""

import difflib
from collections.abc import Sequence

# Other separators of a CSV file, and what to do about them.
SEPARATORS = {
    "\t": "tabs; rename the file to .tsv",
    ";": "';'; save the file with commas",
    "|": "'|'; save the file with commas",
}
# What columns are often called elsewhere, where the names are not alike.
OTHER_NAMES = {
    "query_id": ("query", "q", "search_query", "user_query", "search_term", "keywords"),
    "session_id": ("search_id", "srch_id", "request_id", "request", "impression_id", "page_view_id"),
    "position": ("rank", "pos", "ordinal", "slot"),
    "doc_id": ("document_id", "product_id", "item_id", "prop_id", "object_id", "sku", "url"),
    "click": ("clicked", "clicks", "click_bool", "is_click"),
}


def closest_column(name: str, found: Sequence[str]) -> str:
    """The column that a missing one is most likely called by, "" = none."""
    close = difflib.get_close_matches(name, found, n=1)
    return next((other for other in (*close, *OTHER_NAMES.get(name, ())) if other in found), "")


def other_separator(columns: Sequence[str]) -> str:
    """The problem of a table whose only column holds all of them; "" = none."""
    used = [mark for mark in SEPARATORS if len(columns) == 1 and mark in columns[0]]
    return f"expected columns separated by commas, found {SEPARATORS[used[0]]}" if used else ""
