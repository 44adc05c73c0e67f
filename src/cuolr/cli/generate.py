"""`cuolr generate`: a synthetic data set that resembles a public one, as LETOR files."""

import json as json_format
from dataclasses import asdict, dataclass
from pathlib import Path

import tyro

from cuolr.cli.options import Name
from cuolr.cli.terminal import progress_bar, say, show_json
from cuolr.data.letor.catalog import DESCRIPTION_FILE
from cuolr.data.letor.reader import write_letor
from cuolr.data.synthetic import generate_splits
from cuolr.files import atomic_folder
from cuolr.progress import share_of
from cuolr.random import DEFAULT_SEED


@dataclass(frozen=True)
class Sizes:
    """Size of the data set.

    Attributes:
        train: Number of training queries.
        vali: Number of validation queries.
        test: Number of test queries.
    """

    train: int = 2_000
    vali: int = 500
    test: int = 500


def generate_folder(
    preset: tyro.conf.Positional[Name],
    *,
    out: Path,
    sizes: Sizes = Sizes(),
    seed: int = DEFAULT_SEED,
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Generate a labelled data set that resembles a public one, as LETOR files OUT/Fold1/{train,vali,test}.txt.

    Args:
        preset: web10k-like, yahoo-like or tiny.
        out: Folder of the data set.
        sizes: Size of the data set.
        seed: The same seed gives the same data.
        json: Print JSON instead of a message.
        overwrite: Replace an existing data set.
    """
    # Each query is generated, and then written.
    total = 2 * (sizes.train + sizes.vali + sizes.test)
    with atomic_folder(out, overwrite, ours=DESCRIPTION_FILE) as folder, progress_bar("generating", total) as progress:
        splits = dict(
            zip(
                ("train", "vali", "test"),
                generate_splits(preset, sizes.train, sizes.vali, sizes.test, seed, progress),
                strict=True,
            )
        )
        (folder / "Fold1").mkdir()
        described = {"preset": preset, **asdict(sizes), "seed": seed}
        # Not every split has a document of the highest grade, so the scale is recorded.
        described["max_grade"] = splits["train"].max_grade
        (folder / DESCRIPTION_FILE).write_text(json_format.dumps(described, indent=2) + "\n", encoding="utf-8")
        for split, dataset in splits.items():
            written = share_of(progress, dataset.candidates.n_queries)
            write_letor(dataset, folder / "Fold1" / f"{split}.txt", written)
    if json:
        show_json({"out": str(out), **described})
    else:
        queries = f"{sizes.train:,} training, {sizes.vali:,} validation and {sizes.test:,} test queries"
        say(f"wrote {out}: {queries}")
