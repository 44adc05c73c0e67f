"""Damage to text in lines and fields: what exports, spreadsheets and other programs do."""

import re

from fuzz.cases import Choices
from fuzz.damage import Damage

FIELDS = (
    b"", b"nan", b"NaN", b"inf", b"-inf", b"-1", b"0", b"1e999", b"-1e-400", b"1.7976931348623157e308", b"3.5e38",
    b"9223372036854775808", b"18446744073709551616", b"-9223372036854775809", b"4294967296", b"1" * 400,
    b"0x10", b"1_000",
    b"1,5", b"007", b"NULL", b"None", b"true",
    b'"', b'""', b"'", b"qid:", b":", b"::", b"#", b"\\", b"\0", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", "é–日".encode(), b"=HYPERLINK(1)", b"\x1b[31m", b"x" * 70_000, b"{}",
    b"[]", b"[1]",
    b'{"a":1}', b"2026-01-32", b"1970-01-01T00:00:00Z", b"../../etc/passwd", b"1:1", b"999999999:1", b"-5:3",
    b"\r", b"\t",
)  # fmt: skip
SEPARATORS = (b"\t", b",", b";", b" ", b"  ", b"|", b":", b"\n", b"\r\n", b"\r", b"", b"\xc2\xa0")
_FIELD = re.compile(rb"[^\s,;:|=\[\]{}\"]+")
_SEPARATOR = re.compile(rb"[\s,;:|=\[\]{}\"]")


def replace_field(content: bytes, choices: Choices) -> bytes:
    """A field is one that a reader might stumble over."""
    return _replaced(content, _FIELD, choices.one_of(FIELDS), choices)


def copy_field(content: bytes, choices: Choices) -> bytes:
    """A field is that of another place."""
    found = _FIELD.findall(content)
    return _replaced(content, _FIELD, choices.one_of(found), choices) if found else content


def replace_separator(content: bytes, choices: Choices) -> bytes:
    """A separator is another."""
    return _replaced(content, _SEPARATOR, choices.one_of(SEPARATORS), choices)


def replace_every_separator(content: bytes, choices: Choices) -> bytes:
    """All separators of a kind are another."""
    return content.replace(choices.one_of(SEPARATORS[:8]), choices.one_of(SEPARATORS))


def delete_lines(content: bytes, choices: Choices) -> bytes:
    """Some lines are missing."""
    lines = content.splitlines(keepends=True)
    del lines[choices.span(len(lines), 5)]
    return b"".join(lines)


def repeat_lines(content: bytes, choices: Choices) -> bytes:
    """Some lines occur twice."""
    lines = content.splitlines(keepends=True)
    part = choices.span(len(lines), 5)
    place = choices.below(len(lines) + 1)
    return b"".join(lines[:place] + lines[part] + lines[place:])


def shuffle_lines(content: bytes, choices: Choices) -> bytes:
    """Lines have changed places."""
    lines = content.splitlines(keepends=True)
    for _ in range(4):
        if lines:
            one, other = choices.below(len(lines)), choices.below(len(lines))
            lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def encode_otherwise(content: bytes, choices: Choices) -> bytes:
    """The text is in another encoding."""
    text = content.decode(errors="replace")
    return text.encode(choices.one_of(("utf-16", "utf-16-le", "utf-8-sig", "utf-32", "cp1252", "utf-7")), "replace")


def _replaced(content: bytes, what: re.Pattern[bytes], by: bytes, choices: Choices) -> bytes:
    places = [found.span() for found in what.finditer(content)]
    if not places:
        return content
    start, end = choices.one_of(places)
    return content[:start] + by + content[end:]


# Those of fields are the most telling.
TEXT: tuple[Damage, ...] = (
    replace_field, replace_field, replace_field, copy_field, copy_field, replace_separator, replace_every_separator,
    delete_lines, repeat_lines, shuffle_lines, encode_otherwise,
)  # fmt: skip
