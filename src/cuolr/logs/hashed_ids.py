"""Keyed hashes in place of ids that can be personal: query text, sessions and users.

The same id and key give the same hash, week after week; without the key, an id can neither be read from its hash nor
tested against it. Ids of documents are not hashed: they match the features, and name no person.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np

from cuolr.errors import InputError, unreadable
from cuolr.logs.clicklog import ClickLog
from cuolr.types import Strings

Kind = Literal["query_id", "session_id", "user_id"]

# A shorter key could be found by trying.
MIN_KEY_BYTES = 16
# 128 bits: among 10¹² ids, two have the same hash with a probability of 10⁻¹⁵.
HASH_BYTES = 16
# Makes a key, on every system.
MAKE_KEY = 'python -c "import secrets; print(secrets.token_hex(32))"'
# Where the source of a log names the key of its ids.
HASHED_WITH = "ids_hashed_with"


@dataclass(frozen=True)
class IdKey:
    """A key for hashing ids; keep it apart from the logs.

    >>> IdKey(b"sixteen bytes or more").hash("user_id", ["ann", "", "ann"]).tolist()[1:] == \
        ["", str(IdKey(b"sixteen bytes or more").hash("user_id", ["ann"])[0])]
    True

    Attributes:
        secret: At least 16 bytes.
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < MIN_KEY_BYTES:
            raise InputError(f"expected a key of at least {MIN_KEY_BYTES} bytes, found {len(self.secret)}")

    @classmethod
    def read(cls, file: Path | str) -> Self:
        """The key in a file, all of whose bytes count."""
        file = Path(file)
        try:
            secret = file.read_bytes()
        except FileNotFoundError:
            raise InputError(f"{file}: key not found; make one with: {MAKE_KEY} > {file}") from None
        except OSError as error:
            raise unreadable(file, error) from None
        try:
            return cls(secret)
        except InputError as error:
            raise InputError(f"{file}: {error}; make one with: {MAKE_KEY} > {file}") from None

    @property
    def name(self) -> str:
        """A text that tells keys apart and says nothing about the key."""
        return self._one(b"name of key", "")[:16]

    def hash(self, kind: Kind, ids: Iterable[str]) -> Strings:
        """The hash of each id, 32 hexadecimal digits; "" stays "". Ids of different kinds have different hashes."""
        distinct, place = np.unique(np.asarray(list(ids), np.str_), return_inverse=True)
        hashes = [self._one(kind.encode(), text) if text else "" for text in distinct.tolist()]
        return np.array(hashes, f"<U{2 * HASH_BYTES}")[place]

    def _one(self, kind: bytes, text: str) -> str:
        # BLAKE2 takes keys of up to 64 bytes.
        key = hashlib.blake2b(self.secret, digest_size=32).digest()
        return hashlib.blake2b(text.encode(), key=key, person=kind, digest_size=HASH_BYTES).hexdigest()


def hash_ids(log: ClickLog, key: IdKey) -> ClickLog:
    """The log with hashes in place of the ids of queries, sessions and users."""
    return replace(
        log,
        candidates=replace(log.candidates, query_ids=key.hash("query_id", log.candidates.query_ids)),
        session_id=None if log.session_id is None else key.hash("session_id", log.session_id),
        user_id=None if log.user_id is None else key.hash("user_id", log.user_id),
    )
