import json
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

from cuolr.data.letor import cache as cache_module
from cuolr.data.letor import reader as letor
from cuolr.data.letor.cache import DAY, LAST_USE, Cache, CacheLimits, default_folder, forget_entries, mark_used
from cuolr.data.letor.reader import LetorFile, LetorOptions, read_file
from cuolr.errors import InputError, InputWarning

TEXT = "1 qid:1 1:5 2:6 # a\n0 qid:1 1:7 2:8 # b\n2 qid:2 1:9 2:1 # c\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were parsed, not taken from the cache."""
    paths: list[Path] = []

    def read_and_note(path: Path, *arguments: object) -> LetorFile:
        paths.append(path)
        return read_file(path, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(cache_module, "read_file", read_and_note)
    return paths


def same(a: LetorFile, b: LetorFile) -> bool:
    return (
        np.array_equal(a.candidates.features, b.candidates.features)
        and np.array_equal(a.candidates.offsets, b.candidates.offsets)
        and np.array_equal(a.candidates.query_ids, b.candidates.query_ids)
        and np.array_equal(a.candidates.document_ids, b.candidates.document_ids)  # type: ignore[arg-type]
        and np.array_equal(a.relevance, b.relevance)
        and a.dense == b.dense
    )


def array_file(cache: Cache, name: str) -> Path:
    (path,) = (cache.folder / "content").glob(f"*/{name}.npy")
    return path


def test_the_second_read_is_memory_mapped_and_the_same(cache: Cache, source: Path, parsed: list[Path]) -> None:
    first, second = cache.read(source), cache.read(source)
    assert same(first, read_file(source))
    assert same(first, second)
    assert isinstance(second.candidates.features, np.memmap)
    assert parsed == [source]


def test_a_changed_file_is_read_anew(cache: Cache, source: Path, parsed: list[Path]) -> None:
    cache.read(source)
    source.write_text(TEXT.replace("5", "55"))
    assert cache.read(source).candidates.features[0, 0] == 55
    assert len(parsed) == 2


def test_a_change_that_keeps_size_and_time_is_found_by_verify(cache: Cache, source: Path, parsed: list[Path]) -> None:
    cache.read(source)
    status = source.stat()
    source.write_text(TEXT.replace("5", "4"))
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cache.read(source).candidates.features[0, 0] == 5
    assert Cache(cache.folder, verify=True).read(source).candidates.features[0, 0] == 4
    assert len(parsed) == 2


def test_a_touched_or_moved_file_of_the_same_content_is_not_parsed_again(
    cache: Cache, source: Path, parsed: list[Path]
) -> None:
    cache.read(source)
    os.utime(source, ns=(1, 1))
    cache.read(source)
    cache.read(source.rename(source.with_name("moved.txt")))
    assert parsed == [source]


def test_another_reader_or_other_options_do_not_share_an_entry(
    cache: Cache, source: Path, parsed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.read(source)
    cache.read(source, LetorOptions(missing="minimum"))
    monkeypatch.setattr(cache_module, "READER_VERSION", letor.READER_VERSION + 1)
    cache.read(source)
    assert len(parsed) == 3


def test_what_was_put_right_is_told_from_the_cache_too(cache: Cache, tmp_path: Path) -> None:
    path = tmp_path / "scattered.txt"
    path.write_text("1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:1\n")
    for _ in range(2):
        with pytest.warns(InputWarning, match="scattered.txt: the rows of 1 of 2 queries are not consecutive"):
            cache.read(path)


def test_a_changed_group_file_is_noticed(cache: Cache, tmp_path: Path) -> None:
    source, groups = tmp_path / "grouped.txt", tmp_path / "grouped.txt.query"
    source.write_text("1 1:5\n0 1:6\n")
    groups.write_text("2\n")
    assert cache.read(source).candidates.n_queries == 1
    groups.write_text("1\n1\n")
    os.utime(groups, ns=(1, 1))
    assert cache.read(source).candidates.n_queries == 2


@pytest.mark.parametrize("name", ["features", "offsets", "query_ids", "document_ids", "relevance"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "delete", "garbage"])
def test_a_damaged_entry_is_noticed_and_rebuilt(
    cache: Cache, source: Path, parsed: list[Path], name: str, damage: str
) -> None:
    cache.read(source)
    path = array_file(cache, name)
    content = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(content[:-1])
    elif damage == "flip":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "garbage":
        path.write_bytes(os.urandom(len(content)))
    else:
        path.unlink()
    assert same(cache.read(source), read_file(source))
    assert len(parsed) == 2
    cache.read(source)
    assert len(parsed) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"dense": true, "note": null, "arrays": {}}', '{"arrays": 3}'])
def test_a_damaged_description_is_noticed_and_rebuilt(
    cache: Cache, source: Path, parsed: list[Path], text: str
) -> None:
    cache.read(source)
    (description,) = (cache.folder / "content").glob("*/content.json")
    description.write_text(text)
    assert same(cache.read(source), read_file(source))
    assert len(parsed) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_damaged_pointer_only_costs_a_hash(cache: Cache, source: Path, parsed: list[Path], text: str) -> None:
    cache.read(source)
    (pointer,) = (cache.folder / "path").glob("*.json")
    pointer.write_text(text)
    assert same(cache.read(source), read_file(source))
    assert len(parsed) == 1
    assert json.loads(pointer.read_text())["size"] == len(TEXT)


def test_silent_damage_is_found_by_verify(cache: Cache, source: Path, parsed: list[Path]) -> None:
    cache.read(source)
    path = array_file(cache, "features")
    status = path.stat()
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert same(Cache(cache.folder, verify=True).read(source), read_file(source))
    assert len(parsed) == 2


def test_a_crash_while_writing_leaves_no_entry(cache: Cache, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", crash)
        with pytest.raises(KeyboardInterrupt):
            cache.read(source)
    assert not (cache.folder / "content").exists()
    assert same(cache.read(source), read_file(source))


def test_a_folder_that_cannot_be_written_is_a_warning_not_an_error(tmp_path: Path, source: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(InputWarning, match="not cached"):
        file = Cache(tmp_path / "file" / "cache").read(source)
    assert same(file, read_file(source))


def test_a_missing_file_is_one_line(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent.txt: file not found"):
        cache.read(tmp_path / "absent.txt")


def _read_many_times(folder: Path, source: Path) -> float:
    total = 0.0
    for _ in range(20):
        total += float(Cache(folder, verify=True).read(source).candidates.features.sum())
        for entry in (folder / "path").glob("*.json"):
            entry.unlink(missing_ok=True)
    return total


def test_two_processes_at_once_read_the_same(cache: Cache, source: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        sums = pool.starmap(_read_many_times, [(cache.folder, source)] * 2)
    assert sums == [20.0 * (5 + 6 + 7 + 8 + 9 + 1)] * 2


def test_the_default_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUOLR_CACHE", str(tmp_path / "own"))
    assert default_folder() == tmp_path / "own"
    monkeypatch.delenv("CUOLR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "cuolr"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "cuolr"


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
