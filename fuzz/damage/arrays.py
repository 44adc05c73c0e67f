"""Damage to arrays: files of NumPy and safetensors whose headers claim something else, and arrays with other values."""

import ast
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from fuzz.cases import Choices
from fuzz.damage import Damage
from fuzz.damage.trees_of_values import change_json

SIZES = (0, 1, 2, 3, -1, 7, 1_000, 2**20, 2**31, 2**40, 2**62, 2**63, 10**30)
TYPES = (
    "'<f4'", "'<f8'", "'>f4'", "'<f2'", "'<i8'", "'>i8'", "'<i4'", "'|u1'", "'|b1'", "'<U1'", "'<U7'",
    "'>U7'", "'<U0'", "'|O'",
    "'|S9'", "'<c16'", "'<M8[s]'", "'|V0'", "'<f16'", "'<U1000000000'", "'(1000000,1000000)f4'", "[('a', '<f4')]",
    "[('a', '|O')]", "None", "17", "'x'", "[]", "['<f4']",
)  # fmt: skip
HEADERS = ("{", "{}", "[]", "(" * 9_000, "-" * 9_000 + "1", "{" * 300 + "}" * 300, "open('/etc/passwd')", "\0" * 50)
REALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 1e-320, 1e38, 3.5e38, 0.5)
WHOLE = (*range(-8, 9), 15, 31, 100, -100, 2**7, 2**15, 2**16, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63))


def change_npy_header(content: bytes, choices: Choices) -> bytes:
    """The header of a .npy file claims another shape or type."""
    size = int.from_bytes(content[8:10], "little")
    try:
        header = ast.literal_eval(content[10 : 10 + size].decode("latin1"))
        shape, descr, fortran = list(header["shape"]), repr(header["descr"]), header["fortran_order"]
    except (ValueError, SyntaxError, LookupError, TypeError, RecursionError, MemoryError):
        return content
    match choices.below(5):
        case 0 if shape:
            shape[choices.below(len(shape))] = choices.one_of(SIZES)
        case 1:
            descr = choices.one_of(TYPES)
        case 2:
            shape = [*shape, choices.one_of(SIZES)] if choices.below(2) else shape[:-1]
        case 3:
            fortran = not fortran
        case _:
            return _npy(choices.one_of(HEADERS), content[10 + size :], choices)
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {tuple(shape)!r}, }}"
    return _npy(text, content[10 + size :], choices)


def _npy(header: str, data: bytes, choices: Choices) -> bytes:
    text = header.encode("latin1") + b" " * (-(len(header) + 11) % 64) + b"\n"
    version = choices.one_of((1, 1, 1, 1, 2, 3, 4))
    length = struct.pack("<H", min(len(text), 2**16 - 1)) if version == 1 else struct.pack("<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def change_safetensors_header(content: bytes, choices: Choices) -> bytes:
    """The header of a safetensors file claims other shapes, types or places."""
    size = int.from_bytes(content[:8], "little")
    header = change_json(content[8 : 8 + size], choices)
    claimed = choices.one_of((len(header),) * 6 + (0, 2**20, 2**40, 2**63))
    return claimed.to_bytes(8, "little") + header + content[8 + size :]


def change_array(array: npt.NDArray[Any], choices: Choices) -> npt.NDArray[Any]:
    """Another value, shape or type."""
    match choices.below(9):
        case 0 | 1 | 2 | 3 if array.size:
            return _with_other_values(array, choices)
        case 4:
            return array[: choices.below(len(array) + 1)] if array.ndim else array[None]
        case 5:
            return np.concatenate([array, array[: 1 + choices.below(4)]]) if array.ndim else array
        case 6:
            kind = choices.one_of(("<f4", "<f8", "<f2", "<i8", "<i4", "|u1", "|i1", "|b1", "<u8"))
            with np.errstate(all="ignore"):
                return array.astype(kind)
        case 7:
            return choices.one_of(
                (array.reshape(-1), array[..., None], array[None], array.T, array[..., :0], array[:0])
            )
        case _:
            return np.sort(array, axis=None).reshape(array.shape)
    return array


def _with_other_values(array: npt.NDArray[Any], choices: Choices) -> npt.NDArray[Any]:
    changed = array.copy().reshape(-1)
    for _ in range(1 + choices.below(3)):
        value: Any = choices.one_of(REALS) if array.dtype.kind == "f" else choices.one_of(WHOLE)
        place = choices.below(len(changed))
        if choices.below(3) == 0:  # the value of another place
            value = changed[choices.below(len(changed))]
        with np.errstate(all="ignore"):
            changed[place] = np.array(value).astype(array.dtype)
    return changed.reshape(array.shape)


NPY: tuple[Damage, ...] = (change_npy_header,)
SAFETENSORS: tuple[Damage, ...] = (change_safetensors_header,)
