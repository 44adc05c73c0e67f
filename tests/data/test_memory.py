"""Memory is given back where the platform can, and nothing else changes."""

from pathlib import Path

import numpy as np

from cuolr.data.memory import give_back_freed, give_back_pages
from tests.data.resident import resident


def test_pages_of_a_mapped_file_are_given_back_and_read_again(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(8_000_000.0))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    total = mapped.sum()
    before = resident("RssFile")
    give_back_pages(mapped)
    assert resident("RssFile") < before - mapped.nbytes // 2
    assert mapped.sum() == total


def test_arrays_that_are_no_mapped_files_and_changes_to_mapped_ones_are_left_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(10))
    changed = np.load(tmp_path / "a.npy", mmap_mode="c")
    changed[3] = 1.0
    read_only = changed[:]
    read_only.flags.writeable = False
    for array in (changed, read_only, np.ones(3)):
        expected = array.copy()
        give_back_pages(array)
        np.testing.assert_array_equal(array, expected)


def test_freed_memory_is_given_back_without_changing_what_is_used() -> None:
    kept = [np.full(10_000, i) for i in range(200)]
    freed = kept[::2]
    del kept[::2]
    del freed
    give_back_freed()
    assert [int(each[0]) for each in kept] == list(range(1, 200, 2))
