"""`table`: a row per shown document, in Parquet, Feather, CSV, TSV or JSON lines."""

from collections.abc import Sequence
from pathlib import Path

from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceLog


@IMPORTERS.register("table")
class TableImporter(LogImporter):
    """Takes the files as they are; features are given beside them."""

    def read(self, files: Sequence[Path]) -> SourceLog:
        """The files themselves."""
        return SourceLog(list(files))
