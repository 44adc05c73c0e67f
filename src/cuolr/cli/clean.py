"""`cuolr clean`: remove what killed commands left behind."""

from pathlib import Path

import tyro

from cuolr.cli.terminal import say, show_json
from cuolr.errors import InputError
from cuolr.output_lock import clean as remove_leftovers


def clean(folder: tyro.conf.Positional[Path], json: bool = False) -> None:
    """Remove the hidden, half-written files and folders that killed commands left in a folder and below.

    What a command is still writing is not touched. An output that was being replaced is put back if the new one is not
    there. A command also does this for its own output, so that this is needed only if it is not run again.

    Args:
        folder: Folder to search, such as the one that outputs were written to.
        json: Print JSON instead of messages.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: folder not found")
    found = remove_leftovers(folder)
    if json:
        show_json({"leftovers": [{"path": str(one.path), "outcome": one.outcome} for one in found]})
        return
    for one in found:
        say(f"{one.outcome}: {one.path}")
    say(f"{folder}: leftovers removed: {sum(one.outcome == 'removed' for one in found):,}")
