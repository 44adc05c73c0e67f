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
from cuolr.data.candidate_store import load_candidates, read_array, save_candidates
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


EXPECTED = "features [n, F] in float32"


def write(path: Path, header: str, data: bytes = bytes(48)) -> Path:
    text = header.encode("latin1") + b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data)
    return path


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("shape", [(3, 4), (0, 4)])
def test_what_numpy_saves_is_read(shape: tuple[int, int], mapped: bool, tmp_path: Path) -> None:
    array = np.random.default_rng(0).random(shape).astype(np.float32)
    np.save(tmp_path / "a.npy", array)
    found = read_array(tmp_path / "a.npy", EXPECTED, ndim=2, kind="f", size=4, mapped=mapped)
    np.testing.assert_array_equal(found, array)
    assert isinstance(found, np.memmap) == (mapped and array.size > 0)


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 4)}", "48 bytes for an array"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "48 bytes for an array"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-3, -4)}", "48 bytes for an array"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}", "48 bytes for an array"),
        ("{'descr': '>f4', 'fortran_order': False, 'shape': (3, 4)}", "found >f4"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2)}", "found float64"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (3, 2)}", "found object"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (12,)}", "found float32"),
        ("-" * 9_000 + "1", "damaged"),
        ("(" * 9_000, "damaged"),
        ("{", "damaged"),
        ("open('/etc/passwd')", "damaged"),
    ],
)
def test_headers_that_claim_something_else_are_refused(header: str, problem: str, mapped: bool, tmp_path: Path) -> None:
    file = write(tmp_path / "a.npy", header)
    with pytest.raises(InputError, match=problem) as error:
        read_array(file, EXPECTED, ndim=2, kind="f", size=4, mapped=mapped)
    (line,) = error.value.problems
    assert line.startswith(f"{file}: expected {EXPECTED}")
    assert "\n" not in line


def test_zero_rows_of_any_width_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1099511627776)}", b"")
    with pytest.raises(InputError, match="0 bytes for an array"):
        read_array(file, EXPECTED, ndim=2, kind="f")


@pytest.mark.parametrize("character", [0xD800, 0xDFFF, 0x110000, 0xFFFFFFFF])
def test_texts_that_are_none_are_refused(character: int, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(["abc", "é日\U0010ffff"]))
    assert read_array(tmp_path / "a.npy", "texts", ndim=1, kind="U").tolist() == ["abc", "é日\U0010ffff"]
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content[:-4] + character.to_bytes(4, "little"))
    with pytest.raises(InputError, match="values that are no characters"):
        read_array(tmp_path / "a.npy", "texts", ndim=1, kind="U", mapped=True)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.npy: file not found"):
        read_array(tmp_path / "a.npy", "texts", ndim=1, kind="U")
    os.mkdir(tmp_path / "b.npy")
    with pytest.raises(InputError, match=r"b\.npy: cannot be read"):
        read_array(tmp_path / "b.npy", "texts", ndim=1, kind="U")
