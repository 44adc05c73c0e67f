"""The journal: lists and events, on disk within a second, without a call waiting for the disk.

Lines are written and synced together once a second, so that a crash loses the last second at most. A journal that is
large or old enough is closed, and made into a part. If the disk is full, records are lost and counted, ranking goes on,
and writing is tried again each second, with a new file: a file with an unfinished line is never continued.
"""

import contextlib
import json
import logging
import os
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from cuolr.errors import InputError
from cuolr.files import atomic_file
from cuolr.logs.served_log import JOURNAL, NUMBERED, PART, numbered_files, read_journal
from cuolr.output_lock import clean, lock_open_file
from cuolr.serving.metrics import ServiceMetrics
from cuolr.serving.request_ids import RequestIds

# Half a second, so that the time to write is within the second, too.
SYNC_SECONDS = 0.5
# Records that wait for the disk, at most.
MAX_PENDING = 200_000
LOCK_FILE = "lock"
log = logging.getLogger("cuolr.serving")


@dataclass(frozen=True)
class Rotation:
    """When a journal becomes a part.

    Attributes:
        max_bytes: Its size.
        max_seconds: Its age.
    """

    max_bytes: int = 32 * 1024 * 1024
    max_seconds: float = 3_600.0


HOURLY = Rotation()


class Journal:
    """Writes the log of one service.

    Attributes:
        folder: Of the log; one service at a time writes to it.
        ids: Of requests.
    """

    def __init__(self, folder: Path, rotation: Rotation = HOURLY) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._rotation = folder, rotation
        self._lock = _locked(folder)
        self.ids = RequestIds.of_folder(folder)
        self._pending: deque[dict[str, Any]] = deque()
        self._stopping = threading.Event()
        self._file: IO[bytes] | None = None
        self._opened = 0.0
        self._synced = 0  # bytes of the file that are safely on disk
        self._compacting = ThreadPoolExecutor(1, "compaction")
        self._writer = threading.Thread(target=self._run, name="journal", daemon=True)
        self._metrics: ServiceMetrics | None = None
        self._writable = True

    def start(self, metrics: ServiceMetrics) -> None:
        """Begin to write; what a crash left behind becomes parts."""
        self._metrics = metrics
        metrics.log_writable.set(1)
        self._compacting.submit(compact_all, self.folder)
        self._writer.start()

    def stop(self) -> None:
        """Write down what is left, as a part."""
        self._stopping.set()
        if self._writer.is_alive():
            self._writer.join()
        self._close()
        self._compacting.shutdown(wait=True)
        self._lock.close()

    def write(self, record: dict[str, Any]) -> None:
        """Take a record; it is on disk within a second."""
        if len(self._pending) < MAX_PENDING:
            self._pending.append(record)
        else:
            self._count_lost(1)

    def _run(self) -> None:
        while True:
            last = self._stopping.wait(SYNC_SECONDS)
            self._sync()
            if last and not self._pending:
                return

    def _sync(self) -> None:
        """Write and sync the records that wait; if that fails, they are lost."""
        # Records that come meanwhile wait for the next time.
        records = [self._pending.popleft() for _ in range(len(self._pending))]
        try:
            if records:
                self._append(b"".join(json.dumps(record).encode() + b"\n" for record in records))
                self._count_written(len(records))
            if self._file is not None and self._is_due(self._file):
                self._close()
        except Exception as error:  # whatever it is, the records that come next are written
            self._give_up(records, error)

    def _append(self, lines: bytes) -> None:
        if self._file is None:
            self._file, self._synced = _new_journal(self.folder), 0
            self._opened = time.monotonic()
        self._file.write(lines)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced = self._file.tell()

    def _is_due(self, file: IO[bytes]) -> bool:
        return file.tell() >= self._rotation.max_bytes or time.monotonic() - self._opened >= self._rotation.max_seconds

    def _close(self) -> None:
        """Close the journal, and make a part of it in another thread."""
        if self._file is None:
            return
        name = Path(self._file.name)
        file, self._file = self._file, None
        file.close()
        self._compacting.submit(compact, name)

    def _give_up(self, records: list[dict[str, Any]], error: Exception) -> None:
        """Lose these records, and what of them is in the file: nothing is half there, no empty file is left."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):  # closing writes what is left, which fails again
                file.close()
            try:
                if self._synced:
                    os.truncate(file.name, self._synced)
                else:
                    os.unlink(file.name)
            except OSError:
                log.debug("the journal could not be shortened, either")
        if self._writable:
            reason = getattr(error, "strerror", None) or error
            log.error("the log cannot be written (%s); lists and events are lost until it can", reason)
        self._writable = False
        self._count_lost(len(records))

    def _count_written(self, number: int) -> None:
        if not self._writable:
            log.warning("the log can be written again")
        self._writable = True
        if self._metrics is not None:
            self._metrics.logged.inc(number)
            self._metrics.log_writable.set(1)

    def _count_lost(self, number: int) -> None:
        if self._metrics is not None:
            self._metrics.log_lost.inc(number)
            self._metrics.log_writable.set(0)


def _new_journal(folder: Path) -> IO[bytes]:
    """The file of the next number."""
    number = max(numbered_files(folder), default=0) + 1
    return (folder / JOURNAL.format(number)).open("xb")


def _locked(folder: Path) -> IO[bytes]:
    """Keep other services out of the folder until this one ends, however it ends."""
    file = (folder / LOCK_FILE).open("ab")
    try:
        lock_open_file(file.fileno())
    except BlockingIOError:
        file.close()
        raise InputError(
            f"{folder}: another service writes to this log; give each service a folder of its own"
        ) from None
    return file


def compact(journal: Path) -> None:
    """Make a part of a journal. If it fails, the journal stays, and is read in its place."""
    match = NUMBERED.fullmatch(journal.name)
    assert match is not None, journal
    part = journal.with_name(PART.format(int(match[2])))
    try:
        if not part.exists():
            rows = read_journal(journal)
            if len(rows):
                _write(rows, part)
        journal.unlink()
    except (OSError, InputError, pl.exceptions.PolarsError) as error:
        log.warning("%s: no part was made of it (%s); it is read as it is", journal.name, error)


def compact_all(folder: Path) -> None:
    """Make parts of the journals that a crash left behind, and remove unfinished files."""
    clean(folder)
    for path in sorted(folder.iterdir()):
        match = NUMBERED.fullmatch(path.name)
        if match is not None and match[1] == "journal":
            compact(path)


def _write(rows: pl.DataFrame, part: Path) -> None:
    with atomic_file(part) as unfinished:
        rows.write_parquet(unfinished, compression="zstd")
