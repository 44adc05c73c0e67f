"""Damage below gzip: what is inside is damaged, and its checksum made anew."""

import gzip
import zlib
from collections.abc import Sequence

from fuzz.choices import Choices
from fuzz.damage import Damage


def inside_gzip(damages: Sequence[Damage]) -> Damage:
    """One of these damages to the content of a gzip file."""

    def damage_inside(content: bytes, choices: Choices) -> bytes:
        try:
            inside = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return content
        return gzip.compress(choices.one_of(damages)(inside, choices), 1, mtime=0)

    return damage_inside
