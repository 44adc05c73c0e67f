"""Titles and pictures of documents, for people."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import polars as pl

from cuolr.data.feature_tables import logged_ids
from cuolr.data.tables import read_errors, scan_table
from cuolr.errors import InputError
from cuolr.files import part_of
from cuolr.types import Candidates

# Larger pictures are not embedded.
MAX_PICTURE_BYTES = 100_000
# The kinds of pictures that are embedded, by their first bytes. SVG is none of them: it can hold scripts.
SIGNATURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
DATA_URI = re.compile(r"data:image/[a-z+.-]+;base64,(.*)", re.DOTALL)
COLUMNS = ("query_id", "doc_id", "title", "image")


@dataclass(frozen=True)
class DocumentTitles:
    """Titles and pictures by document, or by query and document.

    Attributes:
        folder: What the paths of pictures are relative to.
        by_document: (title, path or data of the picture) by (query_id, doc_id); query_id "" = all queries.
    """

    folder: Path = Path()
    by_document: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path, candidates: Candidates) -> Self:
        """Read a table with the column doc_id, title, image or both and, for the title of one query, query_id.

        Args:
            file: CSV, Parquet, Feather or JSON lines.
            candidates: The documents of the log; titles of others are left out.
        """
        table = scan_table(file, text_columns=COLUMNS)
        with read_errors(file):
            names = table.collect_schema().names()
        if "doc_id" not in names or not {"title", "image"} & set(names):
            found = ", ".join(f"'{name}'" for name in names[1:]) or "none"
            raise InputError(f"{file}: expected the columns doc_id and title (or image), found {found}")
        own = pl.LazyFrame({"doc_id": sorted(set(logged_ids(candidates).tolist()))})
        columns = [pl.col(name).cast(pl.String).fill_null("") for name in COLUMNS if name in names]
        with read_errors(file):
            rows = table.select(columns).join(own, on="doc_id", how="semi").collect().to_dicts()
        if not rows:
            raise InputError(f"{file}: has no title of a document of the log; expected its document ids in doc_id")
        titles = {
            (row.get("query_id", ""), row["doc_id"]): (row.get("title", ""), row.get("image", "")) for row in rows
        }
        return cls(file.absolute().parent, titles)

    def title(self, query_id: str, document_id: str) -> str:
        """The title; "" if there is none."""
        return self._entry(query_id, document_id)[0]

    def picture(self, query_id: str, document_id: str) -> str:
        """The picture as a data URI; "" if there is none, or if it is too large or no PNG, JPEG, GIF or WebP."""
        source = self._entry(query_id, document_id)[1]
        return _embedded(source, self.folder) if source else ""

    def _entry(self, query_id: str, document_id: str) -> tuple[str, str]:
        own = self.by_document.get((query_id, document_id))
        return self.by_document.get(("", document_id), ("", "")) if own is None else own


NO_TITLES = DocumentTitles()


def _embedded(source: str, folder: Path) -> str:
    try:
        content = _content(source, folder)
    except (OSError, ValueError, binascii.Error):
        return ""
    kind = next((kind for signature, kind in SIGNATURES.items() if content.startswith(signature)), None)
    if kind is None or (kind == "webp" and content[8:12] != b"WEBP"):
        return ""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _content(source: str, folder: Path) -> bytes:
    """The bytes of a picture; none of one that is too large."""
    inline = DATA_URI.fullmatch(source)
    if inline is not None:
        content = base64.b64decode(inline[1], validate=True)
        return content if len(content) <= MAX_PICTURE_BYTES else b""
    path = part_of(folder, source)
    return path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_PICTURE_BYTES else b""
