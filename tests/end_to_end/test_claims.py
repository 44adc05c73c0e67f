"""Files that claim more than they have: one line, within 2 seconds of CPU and 500 MB, by a process that starts anew."""

import base64
import gzip
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.logs.log_folder import save_click_log
from cuolr.policies.model_folder import save_policy
from tests.data.small_data import full_log
from tests.policies.test_conformance import EXAMPLES
from tests.policies.test_crafted_models import craft, put

pytestmark = pytest.mark.thorough

MAX_CPU_SECONDS, MAX_BYTES = 2.0, 500 << 20
# A busy machine makes every process slower: the fastest of some runs counts, and time is relative to a loop that takes
# so long on the machine of the promise.
ATTEMPTS = 3
LOOPS, LOOP_SECONDS = 1_000_000, 0.06
ROWS = 12_345

Command = list[object]


def log_with(name: str, content: bytes) -> Callable[[Path], Command]:
    def make(folder: Path) -> Command:
        save_click_log(full_log(), folder / "LOG")
        (folder / "LOG" / name).write_bytes(content)
        return ["log-info", folder / "LOG", "--no-verify"]

    return make


def huge_array() -> bytes:
    """The header of an array of 16 TB."""
    described = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 4000), }"
    header = described.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def bomb(name: str, *command: object, level: int = 9) -> Callable[[Path], Command]:
    """A gigabyte of one letter in a megabyte; at a lower level, in some megabytes, which is no bomb by its size."""

    def make(folder: Path) -> Command:
        (folder / name).write_bytes(gzip.compress(b"a" * (64 << 20), level, mtime=0) * 16)
        return [
            command[0],
            folder / name,
            *command[1:],
            *(["--out", folder / "OUT"] if "import-log" in command else []),
        ]

    return make


def model(kind: str, change: Callable[[Path], None]) -> Callable[[Path], Command]:
    def make(folder: Path) -> Command:
        save_policy(EXAMPLES[kind](), folder / "MODEL")
        change(folder / "MODEL")
        (folder / "candidates.csv").write_text("query_id,doc_id,a,b,c,d\nq,d,1,2,3,4\n")
        return ["rank", folder / "MODEL", "--candidates", folder / "candidates.csv", "--out", folder / "OUT.csv"]

    return make


def huge_tensors(folder: Path) -> None:
    """Arrays of 4 TB, with the right hash."""
    claim = {"weights": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}}
    craft(folder, None, {}, json.dumps(claim).encode())


def many_tensors(folder: Path) -> None:
    """200,000 empty arrays, with the right hash."""
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    craft(folder, None, {}, json.dumps({f"a{number}": empty for number in range(200_000)}).encode())


def many_rows(folder: Path) -> Command:
    """A table whose footer claims 10¹² rows."""
    file = folder / "clicks.parquet"
    pl.DataFrame({"query_id": ["q"] * ROWS}).write_parquet(file)
    content = file.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:-8].replace(varint(2 * ROWS), varint(2 * 10**12))
    file.write_bytes(content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return ["import-log", file, "--out", folder / "OUT"]


def varint(number: int) -> bytes:
    """As Parquet's footer stores whole numbers: seven bits to a byte, the lowest first."""
    digits = [number >> shift & 127 for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([*(digit | 128 for digit in digits[:-1]), digits[-1]])


# Two files by pyarrow, which is no dependency. 200,000 rows of one category, a text of 1 MB, after 2,000 of another:
CATEGORIES = (
    b"eNoLcAwyFGURndRZJVrmA2QwCDEwaGzV/9vg4enEzzCFgSGAkYGBodAByKlgZPj839KBiYlBoAIb9hbiqhBlEFUQNdIRPbCDSVRAlE2UTYYB"
    b"Yp6CQCMDAwuQA5RhZFwgz7BgJhMjULWUqA421byZSKpBxKhSmikVE9XQEV0gj6aSO5KBgRnIWSAPii5GURZJHVMGCbbi5IzU3ERRJgZRHlUm"
    b"CY7C0tSiyvjMFFUGH5BOsQVXJCRlJGXUGGREeSRNGdgEJBFqRHlA0mLz+qvETnCozWNU49DUAaU4kGEMQNvFGGzEFtx/13eJW5JNUo0BqBZk"
    b"Ikg5kKnGAdTEICkjweMYFOQfbgVxh8QNRn0QME13BIJARwjwdnQsd3RKd3RzdEx3dAZLOTo5OTq6ghglAUD15WClTiDCDcpyd3T0dHSMdHQq"
    b"d/QF8d0Q5jk5BYGYTp4gjpcjslWOjs4gwsPNMCrCyzTCKCcbIpoOEQeqg9DlIMITRAP5HiB5mNmeUHUw90GArS2DhEJBYhEw7Ep0kwsKdBOL"
    b"ivLLFcpSi4oz8/MUjMz0DPQMJWVAYT4LmEEDgLkYANHy1eI="
)
# 2,000 rows of a text of 1 MB after 2,000 of another, in DELTA_BYTE_ARRAY: of each text, the length of what it shares.
PREFIXES = (
    b"eNoLcAwyFGUQnTK1SvQJk47oATtRPlE2UTYZBgYGja36fxs8vFz5GXxYGJjcROU3rDRVlJy0zoPHRvqIUfSNxKKNLlsftGuIFunz3/MN4jp/"
    b"OeB2E8dplqSCDduYJjI7GbRevHYgcImT14XHWz7ZO7ieefPOT/qpTkjuH7/9q1d3zbjJ2bmLRYjh4x+F+XOaJ8SIfMkTYGCc9YvBwWSO540F"
    b"ASYMr/5Ezi3klFow1fFskJ/jQakdrgsbOJkYBCqw4WAtrgpRFkkdUwYJtuLkjNTcRFEmBlEeVSYJjsLS1KLK+MwUVQYfkL/EDthJykjKqDHI"
    b"iPJIqrLxSSJUiPIAJcUOTa0Sm8SsxuEpAwwZPqAxNmJNnVWSbJJqDAfsQAaAFBywU+MAqmKQlJHgcQwK8g+3gtgqsYZRHwSM0x2BINARArwd"
    b"HcsdndId3Rwd0x2dwVKOTk6Ojr4ghrOjoydYAEEDgSuICIWyQkH6gPo9QOaAzXWCmuzoGuoKNQSmCQJAljhVpISHVaaGWRZEOcLkkbQ6Otoy"
    b"SCgUJBYB/V+im1xQoJtYVJRfrlCWWlScmZ+nYGSmZ6BnKCkDCrUYRgaGAGBiAQAiE6TH"
)


def table(content: bytes) -> Callable[[Path], Command]:
    def make(folder: Path) -> Command:
        (folder / "clicks.parquet").write_bytes(zlib.decompress(base64.b64decode(content)))
        return ["import-log", folder / "clicks.parquet", "--out", folder / "OUT"]

    return make


SHARED_ROWS = 3_000


def shared(name: str) -> pl.Series:
    """A text of 100 KB that all rows share, but some at the beginning."""
    texts = pl.Series(name, ["a", "x" * 10**5])
    return texts.gather((np.arange(SHARED_ROWS) >= SHARED_ROWS // 3).astype(np.int64))


def clax(folder: Path) -> Command:
    lists = {"query_doc_ids": [[1, 2]] * SHARED_ROWS, "clicks": [[0, 1]] * SHARED_ROWS}
    pl.DataFrame({**lists, "query_id": shared("query_id")}).write_parquet(folder / "a.parquet")
    return ["import-log", folder / "a.parquet", "--format", "clax", "--out", folder / "OUT"]


def baidu(folder: Path) -> Command:
    numbers = pl.int_range(SHARED_ROWS, eager=True)
    columns = {"query_no": numbers, "position": numbers * 0 + 1, "click": numbers % 2, "text_md5": shared("text_md5")}
    pl.DataFrame(columns).write_ipc(folder / "a.feather", compression="zstd")
    return ["import-log", folder / "a.feather", "--format", "baidu-ultr-uva", "--out", folder / "OUT"]


def own_log(command: str) -> Callable[[Path], Command]:
    """A log whose sessions have one id."""

    def make(folder: Path) -> Command:
        for name in ("LOG", "OTHER"):
            save_click_log(full_log(), folder / name)
        file = folder / "LOG" / "sessions.parquet"
        sessions = pl.read_parquet(file)
        sessions = sessions[np.zeros(SHARED_ROWS, np.int64)]
        sessions.with_columns(shared("session_id")).write_parquet(file)
        out = ["--out", folder / "OUT"] if command != "log-info" else []
        return [command, folder / "LOG", *([folder / "OTHER"] if command == "merge-logs" else []), "--no-verify", *out]

    return make


def long_id(folder: Path) -> Command:
    """One id of 100,000 characters among 20,000, which NumPy would give as much room each."""
    ids = ["x" * 100_000, *(f"d{i}" for i in range(20_000))]
    rows = [f"s{i},q{i % 50},{name},1,0" for i, name in enumerate(ids)]
    (folder / "clicks.csv").write_text("\n".join(["session_id,query_id,doc_id,position,click", *rows]))
    return ["import-log", folder / "clicks.csv", "--out", folder / "OUT"]


CLAIMS: dict[str, Callable[[Path], Command]] = {
    "`features.npy` that claims 16 TB": log_with("features.npy", huge_array()),
    "`meta.json` with a million brackets": log_with("meta.json", b"[" * 10**6),
    "`meta.json` with a number of a million digits": log_with("meta.json", b'{"format": ' + b"1" * 10**6 + b"}"),
    "1 MB of gzip that holds 1 GB, as LETOR": bomb("data.txt.gz", "inspect"),
    "5 MB of gzip that hold one line of 1 GB, as LETOR": bomb("data.txt.gz", "inspect", level=1),
    "the same as CSV": bomb("clicks.csv.gz", "import-log"),
    "the same as JSON lines": bomb("clicks.ndjson.gz", "import-log"),
    "Parquet whose footer claims 10¹² rows": many_rows,
    "1 KB of Parquet: a category of 1 MB in 200,000 rows": table(CATEGORIES),
    "1 KB of Parquet: a text of 1 MB in 2,000 rows, by its prefix": table(PREFIXES),
    "CLAX: a query of 100 KB in 2,000 rows": clax,
    "Baidu-ULTR: a document of 100 KB in 2,000 rows": baidu,
    "a log: one id of 100 KB of 2,000 sessions": own_log("log-info"),
    "such a log, to be merged": own_log("merge-logs"),
    "CSV: a document of 100,000 letters among 20,000": long_id,
    "arrays of a model that claim 4 TB": model("ranksvm", huge_tensors),
    "200,000 empty arrays of a model": model("ranksvm", many_tensors),
    "a network of 10⁹ units": model("network", lambda folder: craft(folder, None, {"hidden": [10**9]})),
    "a network of states with 10⁹ units": model("sequential", lambda f: craft(f, None, {"hidden": [10**9, 8]})),
    "trees that go round in circles": model("trees", lambda f: craft(f, put("trees.left", np.zeros_like), {})),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_is_refused_in_little_time_and_memory(claim: str, tmp_path: Path) -> None:
    command = CLAIMS[claim](tmp_path)
    taken = []
    for _ in range(ATTEMPTS):
        seconds, memory = refused(command)
        assert memory <= MAX_BYTES
        taken.append(seconds / slowness())
        if taken[-1] <= MAX_CPU_SECONDS:
            break
    print(f"| {claim} | `{command[0]}` | {min(taken):.1f} s | {memory / 1e6:.0f} MB |")
    assert min(taken) <= MAX_CPU_SECONDS


def slowness() -> float:
    """How many times as long as on the machine of the promise a loop takes now, or 1 if it is faster."""
    start = time.process_time()
    sum(number * number for number in range(LOOPS))
    return max(1.0, (time.process_time() - start) / LOOP_SECONDS)


PROGRAM = """
import re, sys
from pathlib import Path
from cuolr.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def refused(command: Command) -> tuple[float, int]:
    """The CPU seconds and the peak memory of a command that says one line.

    The system counts the memory of this process as the child's, too, so the child says its own.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-c", PROGRAM, *map(str, command)]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said, peak = process.stderr.read().decode(), process.stdout.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 2, said
    assert len(said.splitlines()) == 1, said
    return used.ru_utime + used.ru_stime, int(peak) << 10
