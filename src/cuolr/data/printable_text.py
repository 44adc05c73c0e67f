"""Texts of unknown origin with escapes for what a terminal obeys instead of showing it."""

import re

# Control characters, and those that change the direction of writing, by which a text can pose as another. Not tabs and
# new lines.
OBEYED = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
# Also halves of surrogate pairs, which cannot be printed.
_NOT_SHOWN = re.compile(rf"[{OBEYED}\ud800-\udfff]")


def printable(text: str) -> str:
    r"""A text that can come from a log, such as an id, with an escape for each character that a terminal would obey.

    >>> printable("\x1b[2Jred\u202e")
    '\\x1b[2Jred\\u202e'
    """
    return _NOT_SHOWN.sub(lambda found: ascii(found[0])[1:-1], text)
