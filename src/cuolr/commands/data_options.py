"""How the commands that read a data set are told which, and how they read it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cuolr.data.cache import Cache, default_folder
from cuolr.data.catalog import Source, check_counts, find_source, load_source
from cuolr.data.letor import LetorFile, LetorOptions
from cuolr.terminal import progress_bar, say
from cuolr.types import RankingDataset


@dataclass(frozen=True)
class DataOptions:
    """How to read a data set."""

    fold: int | None = None
    """The fold, where the data set has folds; the first by default."""
    dataset: str | None = None
    """The data set's name in the catalogue (`cuolr list`); by default found by the folder's name."""
    zero_based: bool = False
    """Feature indices start at 0, not at 1."""
    missing: Literal["zero", "minimum"] = "zero"
    """What NULL becomes: 0, or the feature's least value in the file."""
    verify: bool = False
    """Compare the content of the files with the cache, even if they look unchanged."""

    def find(self, folder: Path) -> Source:
        """The files of the data set."""
        return find_source(folder, self.fold, self.dataset)

    def read_file(self, path: Path, options: LetorOptions | None = None) -> LetorFile:
        """Read one file through the cache, with a progress bar."""
        cache = Cache(default_folder(), self.verify)
        size = path.stat().st_size if path.is_file() else 0
        with progress_bar(f"reading {path.name}", size, in_bytes=True) as progress:
            return cache.read(path, options or LetorOptions(self.zero_based, self.missing), progress)

    def load(self, folder: Path) -> dict[str, RankingDataset]:
        """Read the splits of a data set."""
        source = self.find(folder)
        splits = load_source(source, self.read_file, LetorOptions(self.zero_based, self.missing))
        if note := check_counts(source, splits):
            say(f"note: {note}")
        return splits
