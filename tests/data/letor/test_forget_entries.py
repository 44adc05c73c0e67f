import os
import time
from pathlib import Path

from cuolr.data.letor.cache import Cache
from cuolr.data.letor.forget_entries import DAY, LAST_USE, CacheLimits, forget_entries, mark_used


def entry(cache: Path, name: str, days: float, size: int = 1000) -> Path:
    folder = cache / "content" / name
    folder.mkdir(parents=True)
    (folder / "features.npy").write_bytes(bytes(size))
    (folder / LAST_USE).write_text("")
    used(folder, days)
    return folder


def used(folder: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(folder / LAST_USE, (then, then))


def left(cache: Path) -> list[str]:
    return sorted(folder.name for folder in (cache / "content").iterdir())


def test_entries_go_by_the_time_since_their_last_use(tmp_path: Path) -> None:
    for days in (1, 89, 91, 300):
        entry(tmp_path, f"used-{days}", days)
    entry(tmp_path, "new", 400)
    forget_entries(tmp_path, kept="new")
    assert left(tmp_path) == ["new", "used-1", "used-89"]


def test_above_a_size_those_go_first_that_were_used_longest_ago(tmp_path: Path) -> None:
    for days in (1, 2, 3, 4):
        entry(tmp_path, f"used-{days}", days)
    forget_entries(tmp_path, "used-4", CacheLimits(gigabytes=2500 / 1e9))
    assert left(tmp_path) == ["used-1", "used-2", "used-4"]


def test_an_entry_that_is_used_is_marked_at_most_once_a_day(tmp_path: Path) -> None:
    folder = entry(tmp_path, "old", 80)
    mark_used(folder)
    assert time.time() - (folder / LAST_USE).stat().st_mtime < 60
    used(folder, 0.5)
    mark_used(folder)
    assert time.time() - (folder / LAST_USE).stat().st_mtime > 0.4 * DAY
    mark_used(tmp_path / "none")


def test_reading_a_file_counts_as_a_use_and_a_new_one_makes_others_go(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    for name in "abc":
        (tmp_path / name).write_text(f"1 qid:{name} 1:0.5\n")
    cache.read(tmp_path / "a")
    cache.read(tmp_path / "b")
    for folder in (tmp_path / "cache" / "content").iterdir():
        used(folder, 100)
    cache.read(tmp_path / "a")
    before = left(tmp_path / "cache")
    assert len(before) == 2
    cache.read(tmp_path / "c")
    after = left(tmp_path / "cache")
    assert len(set(before) & set(after)) == 1  # a, which was used
    assert len(after) == 2
    again = cache.read(tmp_path / "b")
    assert again.candidates.query_ids.tolist() == ["b"]
