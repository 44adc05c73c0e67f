"""Labelled data: LETOR text, also as gzip, with its group file, and the cache of parsed files."""

import gzip
import shutil
from pathlib import Path

from cuolr.data.letor.cache import Cache
from cuolr.data.letor.reader import read_file, write_letor
from cuolr.data.synthetic import generate
from fuzz.damage.arrays import NPY
from fuzz.damage.bytes import BYTES, inside_gzip
from fuzz.damage.text import TEXT
from fuzz.damage.trees_of_values import JSON
from fuzz.kinds.kind import Kind, hash_of, hash_of_candidates

SPARSE = """2 qid:1 1:0.5 3:1e-3 # docid = GX1
0 qid:1 2:-1 3:7 # docid = GX2
# a comment
1 qid:a\t1:1  2:NULL
0 qid:a 3:1.7976931348623157e308
"""
GROUPED = "1 1:0.5 2:3\n0 1:0.25 2:4\n2 1:1 2:-1\n"


def make_letor(folder: Path) -> None:
    """Dense, sparse, and without ids of queries."""
    for name in ("dense", "sparse", "grouped"):
        (folder / name).mkdir()
    write_letor(generate("tiny", 5, seed=1), folder / "dense" / "data.txt")
    (folder / "sparse" / "data.txt").write_text(SPARSE)
    (folder / "grouped" / "data.txt").write_text(GROUPED)
    (folder / "grouped" / "data.txt.query").write_text("2\n1\n")


def read_letor(folder: Path) -> str:
    """The documents and their labels."""
    file = read_file(folder / "data.txt")
    return hash_of(hash_of_candidates(file.candidates), file.relevance)


def make_gzip(folder: Path) -> None:
    """The same, as gzip."""
    make_letor(folder)
    shutil.rmtree(folder / "grouped")
    for file in folder.glob("*/data.txt"):
        file.write_bytes(gzip.compress(file.read_bytes(), mtime=0))


def make_cache(folder: Path) -> None:
    """A file and the cache of what it holds."""
    (folder / "cached").mkdir()
    (folder / "cached" / "data.txt").write_text(SPARSE)
    Cache(folder / "cached" / "cache").read(folder / "cached" / "data.txt")


def read_cached(folder: Path) -> str:
    """The documents and their labels, from the cache if it is whole."""
    file = Cache(folder / "cache", verify=True).read(folder / "data.txt")
    return hash_of(hash_of_candidates(file.candidates), file.relevance)


KINDS = (
    Kind("LETOR", make_letor, read_letor, {"data.txt": (*TEXT, *TEXT, *BYTES), "*.query": (*TEXT, *BYTES)}),
    Kind("LETOR, gzip damaged", make_gzip, read_letor, {"data.txt": BYTES}, checksum=True),
    Kind("LETOR, gzip made anew", make_gzip, read_letor, {"data.txt": (inside_gzip((*TEXT, *BYTES)),)}),
    Kind(
        "LETOR cache",
        make_cache,
        read_cached,
        {
            "cache/content/*/*.npy": (*NPY, *BYTES),
            "cache/*/*.json": (*JSON, *BYTES),
            "cache/content/*/*.json": (*JSON, *BYTES),
        },
    ),
)
