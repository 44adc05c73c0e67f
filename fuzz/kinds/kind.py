"""A kind of file: how an example of it is made, how it is damaged, and how cuolr reads it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.files import content_hash
from cuolr.logs.clicklog import ClickLog
from cuolr.types import Candidates
from fuzz.cases import Choices
from fuzz.damage import Damage


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: Its name in the table of counts.
        make: Writes examples, each into a folder of its own below the given one.
        read: Reads the example in a folder as the product does; returns the hash of the values.
        damages: The damages to files, by a pattern of their names.
        craft: In place of damages: changes an example as somebody does who knows its checksums.
        checksum: Whether damaged values must be noticed.
    """

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], str]
    damages: Mapping[str, Sequence[Damage]] = field(default_factory=dict)
    craft: Callable[[Path, Choices], None] | None = None
    checksum: bool = False

    def damage(self, folder: Path, times: int, choices: Choices) -> None:
        """Damage the example in a folder."""
        if self.craft is not None:
            return self.craft(folder, choices)
        files = [(file, damages) for pattern, damages in self.damages.items() for file in sorted(folder.glob(pattern))]
        file, damages = choices.one_of(files)
        content = file.read_bytes()
        for _ in range(times):
            content = choices.one_of(damages)(content, choices)
        file.write_bytes(content)
        return None


def hash_of(*values: Any) -> str:
    """A hash of what was read, whatever holds it."""
    return content_hash(*(_plain(value) for value in values))


def hash_of_candidates(candidates: Candidates) -> str:
    """A hash of all documents."""
    recipe = None if candidates.recipe is None else candidates.recipe.to_dict()
    return hash_of(
        candidates.features,
        candidates.offsets,
        candidates.query_ids,
        candidates.document_ids,
        candidates.feature_names,
        recipe,
    )


def hash_of_log(log: ClickLog) -> str:
    """A hash of all sessions and their documents."""
    return hash_of(hash_of_candidates(log.candidates), *(part for item in log.columns.items() for part in item))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "OTUM":
        return [str(item) for item in value.tolist()]
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
