"""`table`: a row per shown document, in Parquet, Feather, CSV, TSV or JSON lines."""

from collections.abc import Sequence
from pathlib import Path

from cuolr.files import size_of
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceLog
from cuolr.progress import Progress, no_progress


@IMPORTERS.register("table")
class TableImporter(LogImporter):
    """Takes the files as they are; features are given beside them."""

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """The files themselves."""
        progress(sum(map(size_of, files)))
        return SourceLog(list(files))
