"""Ids of requests that the service recognises as its own, without keeping them."""

import base64
import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cuolr.errors import InputError
from cuolr.files import atomic_file

KEY_FILE = "key"
KEY_BYTES, RANDOM_BYTES, SIGNATURE_BYTES = 32, 12, 12


@dataclass(frozen=True)
class RequestIds:
    """An id is a random number and its signature, so that it is recognised after a restart, too.

    Attributes:
        key: Signs; kept in the folder of the log, for its owner only.
    """

    key: bytes

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """With the key of a log; a new log gets one."""
        file = folder / KEY_FILE
        if not file.exists():
            with atomic_file(file) as unfinished:
                os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                unfinished.write_bytes(secrets.token_bytes(KEY_BYTES))
        key = file.read_bytes()
        if len(key) != KEY_BYTES:
            raise InputError(f"{file}: damaged: expected {KEY_BYTES} bytes, found {len(key)}; remove it for a new key")
        return cls(key)

    def new(self) -> str:
        """An id that was not given out before."""
        number = secrets.token_bytes(RANDOM_BYTES)
        return base64.urlsafe_b64encode(number + self._signature(number)).decode()

    def is_ours(self, request_id: str) -> bool:
        """Whether an id was given out with this key."""
        try:
            content = base64.b64decode(request_id.encode("ascii"), altchars=b"-_", validate=True)
        except ValueError:
            return False
        number, signature = content[:RANDOM_BYTES], content[RANDOM_BYTES:]
        return hmac.compare_digest(signature, self._signature(number))

    def _signature(self, number: bytes) -> bytes:
        return hmac.digest(self.key, number, hashlib.sha256)[:SIGNATURE_BYTES]
