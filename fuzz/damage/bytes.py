"""Damage of bytes, also below gzip, whose checksum is made anew."""

import gzip
import zlib
from collections.abc import Sequence

from fuzz.cases import Choices
from fuzz.damage import Damage

# Lengths, offsets and counts that a careless reader trusts.
EXTREMES = (0, 1, 2**7, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def flip_bit(content: bytes, choices: Choices) -> bytes:
    """One bit is another."""
    changed = bytearray(content)
    if changed:
        changed[choices.below(len(changed))] ^= 1 << choices.below(8)
    return bytes(changed)


def set_byte(content: bytes, choices: Choices) -> bytes:
    """One byte is another."""
    changed = bytearray(content)
    if changed:
        changed[choices.below(len(changed))] = choices.below(256)
    return bytes(changed)


def set_number(content: bytes, choices: Choices) -> bytes:
    """A little-endian number of 1 to 8 bytes is an extreme one."""
    size = choices.one_of((1, 2, 4, 8))
    start = choices.below(max(len(content) - size, 1))
    number = choices.one_of(EXTREMES) % (1 << 8 * size)
    return content[:start] + number.to_bytes(size, "little") + content[start + size :]


def delete(content: bytes, choices: Choices) -> bytes:
    """Some bytes are missing."""
    part = choices.span(len(content), 64)
    return content[: part.start] + content[part.stop :]


def repeat(content: bytes, choices: Choices) -> bytes:
    """Some bytes occur twice."""
    part = choices.span(len(content), 64)
    return content[: part.stop] + content[part] + content[part.stop :]


def insert(content: bytes, choices: Choices) -> bytes:
    """Some bytes are there that were not."""
    start, number = choices.below(len(content) + 1), 1 + choices.below(4)
    return content[:start] + bytes(choices.below(256) for _ in range(number)) + content[start:]


def cut(content: bytes, choices: Choices) -> bytes:
    """The end is missing."""
    return content[: choices.below(len(content))]


def append(content: bytes, choices: Choices) -> bytes:
    """Something follows the end."""
    return content + choices.one_of((b"\0" * 9, b"\n", b"garbage", content[:40]))


def exchange(content: bytes, choices: Choices) -> bytes:
    """Two parts have changed places."""
    first, second = sorted((choices.below(len(content) + 1), choices.below(len(content) + 1)))
    return content[:first] + content[second:] + content[first:second]


BYTES: tuple[Damage, ...] = (flip_bit, set_byte, set_number, delete, repeat, insert, cut, append, exchange)


def inside_gzip(damages: Sequence[Damage]) -> Damage:
    """One of these damages to the content of a gzip file."""

    def damage_inside(content: bytes, choices: Choices) -> bytes:
        try:
            inside = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return content
        return gzip.compress(choices.one_of(damages)(inside, choices), 1, mtime=0)

    return damage_inside
