"""Zstandard of unknown origin: a block of four bytes may hold 128 KB of one letter.

The format is that of RFC 8878: frames of blocks, each of which says how many bytes it takes and, if it repeats one
byte, how often; a compressed block holds at most 128 KB. So the size of the content is nearly known without
decompressing it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from cuolr.data.gzip_files import FREE_BYTES, MAX_EXPANSION
from cuolr.errors import InputError

FRAME, SKIPPED_FRAMES = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)
LARGEST_BLOCK = 128 << 10
RAW, REPEATED = 0, 1
# Bytes of the fields of a frame's header, by the bits that say so.
DICTIONARY_BYTES, SIZE_BYTES = (0, 1, 2, 4), (0, 2, 4, 8)


def check_zstandard(path: Path) -> None:
    """Raise `InputError` if the content is far larger than text in a file of this size can be."""
    size = path.stat().st_size
    allowed = max(FREE_BYTES, MAX_EXPANSION * size)
    content = 0
    with path.open("rb") as file:
        for block in _block_sizes(file):
            content += block
            if content > allowed:
                raise InputError(
                    f"{path}: refused, because its content is more than {MAX_EXPANSION} times as large as the file; "
                    "decompress it with unzstd if you trust it"
                )


def _block_sizes(file: IO[bytes]) -> Iterator[int]:
    """The bytes that each block holds at most; ends where the file is damaged, which its reader will notice."""
    while len(start := file.read(4)) == 4:
        magic = int.from_bytes(start, "little")
        if magic in SKIPPED_FRAMES:
            file.seek(int.from_bytes(file.read(4), "little"), 1)
            continue
        if magic != FRAME or not (descriptor := file.read(1)):
            return
        bits = descriptor[0]
        single_segment, checksum = bits & 32, bits & 4
        size_bytes = SIZE_BYTES[bits >> 6] or (1 if single_segment else 0)
        file.seek((0 if single_segment else 1) + DICTIONARY_BYTES[bits & 3] + size_bytes, 1)
        last = False
        while not last:
            header = int.from_bytes(head := file.read(3), "little")
            if len(head) < 3:
                return
            last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            file.seek(1 if kind == REPEATED else length, 1)
            yield length if kind in (RAW, REPEATED) else LARGEST_BLOCK
        file.seek(4 if checksum else 0, 1)
