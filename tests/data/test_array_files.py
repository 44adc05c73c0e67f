import os
from pathlib import Path

import numpy as np
import pytest

from cuolr.data.array_files import read_array
from cuolr.errors import InputError

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
