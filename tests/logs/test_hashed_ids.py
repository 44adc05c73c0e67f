"""Keyed hashes of ids."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.logs.hashed_ids import IdKey, hash_ids
from tests.small_log import small_log

KEY = IdKey(b"0123456789abcdef")


def test_a_hash_is_blake2_with_the_key_and_the_kind() -> None:
    key = hashlib.blake2b(b"0123456789abcdef", digest_size=32).digest()
    expected = hashlib.blake2b("schuhe größe 42".encode(), key=key, person=b"query_id", digest_size=16).hexdigest()
    assert KEY.hash("query_id", ["schuhe größe 42"]).tolist() == [expected]


def test_hashes_depend_on_the_id_the_kind_and_the_key_and_on_nothing_else() -> None:
    ids = ["a", "b", "", "a"]
    found = KEY.hash("user_id", ids)
    assert found.tolist() == [found[0], found[1], "", found[0]]
    assert len({found[0], found[1]}) == 2
    assert IdKey(b"0123456789abcdef").hash("user_id", ["b"])[0] == found[1]
    assert KEY.hash("session_id", ["a"])[0] != found[0]
    assert IdKey(b"0123456789abcdeg").hash("user_id", ["a"])[0] != found[0]
    assert KEY.hash("user_id", []).tolist() == []


def test_a_log_keeps_all_but_the_ids() -> None:
    log = replace(small_log(5), session_id=np.array(list("vwxyz")), user_id=np.array(["ann", "bob", "", "bob", "ann"]))
    hashed = hash_ids(log, KEY)
    assert hashed.candidates.query_ids.tolist() == KEY.hash("query_id", log.candidates.query_ids).tolist()
    assert hashed.user_id is not None
    assert hashed.user_id[2] == ""
    assert len(set(hashed.user_id)) == 3
    for name, values in log.columns.items():
        assert np.array_equal(hashed.columns[name], values) == (name not in ("session_id", "user_id")), name
    assert hash_ids(small_log(5), KEY).session_id is None


def test_keys_are_read_from_files(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with pytest.raises(InputError, match=r"key: key not found; make one with: python -c "):
        IdKey.read(file)
    file.write_bytes(b"short")
    with pytest.raises(InputError, match=r"key: expected a key of at least 16 bytes, found 5; make one"):
        IdKey.read(file)
    file.write_bytes(b"0123456789abcdef")
    assert IdKey.read(file) == KEY
    assert "0123" not in repr(KEY)
    assert KEY.name != IdKey(b"0123456789abcdeg").name
