"""`cuolr pack`: pack the results of an experiment into one file."""

from pathlib import Path

import tyro

from cuolr.cli.terminal import say, show_json
from cuolr.files import check_files


def pack(
    results: tyro.conf.Positional[Path],
    out: tyro.conf.Positional[Path],
    rename: Path | None = None,
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Pack all results of an experiment into one Parquet file, a row per cell.

    `cuolr report` reads the file like a folder. As FOLDER/results.parquet, it resumes
    `cuolr experiment --out FOLDER`. Stale results, of another configuration, are not packed.

    Args:
        results: Folder of the results, or a Parquet file of packed results.
        out: The Parquet file to write.
        rename: TOML file with new names of methods, learners and settings, such as docs/results/renames.toml.
        json: Print JSON instead of a message.
        overwrite: Replace an existing file.
    """
    # These load torch, which takes a second.
    from cuolr.experiments.packed_results import write_packed
    from cuolr.experiments.renaming import read_renames, renamed
    from cuolr.experiments.results_folder import read_results

    check_files([out], overwrite)
    saved = read_results(results)
    if rename is not None:
        saved = renamed(saved, read_renames(rename))
    write_packed(saved, out)
    size = out.stat().st_size
    if json:
        show_json({"out": str(out), "finished": len(saved.cells), "bytes": size})
    else:
        say(f"wrote {out}: {len(saved.cells)} finished cells, {size / 1e3:,.0f} kB")
