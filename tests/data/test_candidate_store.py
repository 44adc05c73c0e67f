import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.candidate_store import load_candidates, save_candidates
from cuolr.errors import InputError
from cuolr.types import Candidates, Floats
from tests.data.small_data import candidates_of
from tests.small_log import with_missing_values


def cached(array: npt.NDArray[Any], file: Path) -> npt.NDArray[Any]:
    """The array as a map of a file, as a cache gives it."""
    np.save(file, array)
    mapped: npt.NDArray[Any] = np.load(file, mmap_mode="r")
    return mapped


def saved(features: Floats, folder: Path) -> Path:
    """The features file of candidates that have these features."""
    folder.mkdir()
    save_candidates(Candidates(features, np.array([0, len(features)]), np.array(["q"])), folder)
    np.testing.assert_array_equal(load_candidates(folder).features, features)
    return folder / "features.npy"


def test_mapped_features_are_hard_linked(tmp_path: Path) -> None:
    source = tmp_path / "cache.npy"
    file = saved(cached(candidates_of(9).features, source), tmp_path / "log")
    assert file.samefile(source)
    assert not file.is_symlink()


def test_the_link_is_to_the_file_itself_where_it_was_mapped_by_a_symbolic_link(tmp_path: Path) -> None:
    source = tmp_path / "cache.npy"
    cached(candidates_of(9).features, source)
    (tmp_path / "alias.npy").symlink_to(source)
    file = saved(np.load(tmp_path / "alias.npy", mmap_mode="r"), tmp_path / "log")
    assert file.samefile(source)
    assert not file.is_symlink()


def test_features_in_memory_are_copied(tmp_path: Path) -> None:
    assert saved(candidates_of(9).features, tmp_path / "log").stat().st_nlink == 1


def test_a_part_of_a_mapped_file_is_copied(tmp_path: Path) -> None:
    whole = cached(candidates_of(9).features, tmp_path / "cache.npy")
    assert saved(whole[:4], tmp_path / "first").stat().st_nlink == 1
    assert saved(whole[::-1], tmp_path / "backwards").stat().st_nlink == 1


def test_a_map_that_can_be_written_to_is_copied(tmp_path: Path) -> None:
    cached(candidates_of(9).features, tmp_path / "cache.npy")
    features = np.load(tmp_path / "cache.npy", mmap_mode="c")
    features[0, 0] = 7
    assert saved(features, tmp_path / "log").stat().st_nlink == 1


def test_a_file_that_holds_more_than_the_features_is_not_linked(tmp_path: Path) -> None:
    source = tmp_path / "cache.npy"
    cached(candidates_of(9).features, source)
    with source.open("ab") as file:
        file.write(b"labels")
    features = saved(np.load(source, mmap_mode="r"), tmp_path / "log")
    assert features.stat().st_nlink == 1
    assert b"labels" not in features.read_bytes()


def test_a_raw_map_of_labels_and_features_is_not_linked(tmp_path: Path) -> None:
    source = tmp_path / "raw.bin"
    features = candidates_of(9).features
    source.write_bytes(b"labels__" + features.tobytes())
    mapped = np.memmap(source, np.float32, "r", offset=8, shape=features.shape)
    assert b"labels__" not in saved(mapped, tmp_path / "log").read_bytes()


def test_a_file_that_was_replaced_since_it_was_mapped_is_not_linked(tmp_path: Path) -> None:
    source = tmp_path / "cache.npy"
    mapped = cached(candidates_of(9).features, source)
    np.save(tmp_path / "new.npy", np.zeros_like(mapped))
    os.replace(tmp_path / "new.npy", source)
    assert saved(mapped, tmp_path / "log").stat().st_nlink == 1


def test_where_hard_links_cannot_be_made_features_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    mapped = cached(candidates_of(9).features, tmp_path / "cache.npy")
    monkeypatch.setattr(os, "link", refuse)
    assert saved(mapped, tmp_path / "log").stat().st_nlink == 1


def test_removing_the_cache_leaves_the_log(tmp_path: Path) -> None:
    features = candidates_of(9).features
    saved(cached(features, tmp_path / "cache.npy"), tmp_path / "log")
    (tmp_path / "cache.npy").unlink()
    np.testing.assert_array_equal(load_candidates(tmp_path / "log").features, features)


@pytest.mark.parametrize("with_ids", [True, False])
def test_ids_are_kept_as_text(with_ids: bool, tmp_path: Path) -> None:
    candidates = candidates_of(2, 3)
    candidates = replace(
        candidates,
        query_ids=np.array(["007", "köln"]),
        document_ids=np.array(["a", "", "δ", "d" * 50, "e"]) if with_ids else None,
    )
    save_candidates(candidates, tmp_path)
    loaded = load_candidates(tmp_path)
    assert loaded.query_ids.tolist() == ["007", "köln"]
    assert (loaded.document_ids is not None) == with_ids
    if loaded.document_ids is not None:
        assert loaded.document_ids.tolist() == ["a", "", "δ", "d" * 50, "e"]


def test_mapped_features_with_missing_values_are_hard_linked(tmp_path: Path) -> None:
    features = with_missing_values(candidates_of(9)).features
    assert saved(cached(features, tmp_path / "cache.npy"), tmp_path / "log").samefile(tmp_path / "cache.npy")


def test_the_recipe_of_features_comes_back(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "query_id": ["q"] * 2,
            "doc_id": ["a", "b"],
            "x": [1, None],
            "colour": ["é", None],
            "day": ["2024-01-01", None],
        }
    )
    candidates = read_candidates(table)
    save_candidates(candidates, tmp_path)
    loaded = load_candidates(tmp_path)
    assert loaded.recipe == candidates.recipe
    np.testing.assert_array_equal(loaded.features, candidates.features)
    assert candidates.select(np.array([0])).recipe == candidates.recipe


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"columns": [{"nom": "x"}], "dropped": []}'])
def test_a_damaged_recipe_is_named(text: str, tmp_path: Path) -> None:
    save_candidates(candidates_of(2), tmp_path)
    (tmp_path / "feature_recipe.json").write_text(text)
    with pytest.raises(
        InputError, match=r"feature_recipe.json: (damaged: expected the recipe of the features|not valid JSON)"
    ):
        load_candidates(tmp_path)
