"""`cuolr simulate`: a click log from a labelled data set."""

from pathlib import Path
from typing import Any

from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.commands.click_model import ClickModelOptions
from cuolr.commands.data_options import DataOptions
from cuolr.errors import InputError
from cuolr.files import refuse_existing
from cuolr.policies.base import RankingPolicy, ScoringPolicy
from cuolr.policies.linear import fit_ranksvm
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.store import load_policy
from cuolr.policies.uniform import RandomPolicy
from cuolr.terminal import progress_bar, say
from cuolr.types import RankingDataset


def simulate(
    data: Path,
    click_model: str,
    sessions: int,
    out: Path,
    logging: str = "ranksvm",
    fraction: float = 0.01,
    temperature: float | None = None,
    k: int = 10,
    seed: int = 1,
    click_options: ClickModelOptions = ClickModelOptions(),
    data_options: DataOptions = DataOptions(),
    keep_examination: bool = False,
    overwrite: bool = False,
) -> None:
    """Simulate a click log: rank the training queries by a logging policy and draw clicks from a click model.

    Args:
        data: Folder of a labelled data set.
        click_model: A click model's name (`cuolr list`), or a TOML file that describes one.
        sessions: How many.
        out: Folder of the log; no label is in it.
        logging: What ranks: ranksvm, random, or the folder of a saved model.
        fraction: Share of the training queries that ranksvm learns from.
        temperature: Draw each ranking anew, by Plackett-Luce at this temperature; the log has logging_propensity then.
        k: Length of the lists.
        seed: The same seed gives the same log.
        click_options: Parameters of the click model.
        data_options: How to read the data set.
        keep_examination: Write down where the user looked, which no real log knows.
        overwrite: Replace the log if it is there.
    """
    refuse_existing(out, overwrite)
    model = click_options.model(click_model)
    train = data_options.load(data)["train"]
    policy, described = _logging_policy(logging, train, fraction, seed)
    logger: RankingPolicy | StochasticLogger = policy
    if temperature is not None:
        if not isinstance(policy, ScoringPolicy):
            raise InputError(f"--temperature: expected a logging policy that scores documents, found '{logging}'")
        logger = StochasticLogger(policy, temperature)
    simulation = Simulation(train, logger, model, sessions, k, seed, keep_examination)
    source = {"data": str(data), "fold": data_options.fold, "logging": described}
    with progress_bar("simulating", sessions) as progress:
        simulate_to(out, simulation, source, overwrite, progress)
    say(f"wrote {out}: {sessions:,} sessions; look at it with: cuolr log-info {out}")


def _logging_policy(
    name: str, train: RankingDataset, fraction: float, seed: int
) -> tuple[RankingPolicy, dict[str, Any]]:
    """The policy, and what the log's description says about it."""
    if name == "ranksvm":
        return fit_ranksvm(train, fraction, seed), {"name": name, "fraction": fraction, "seed": seed}
    if name == "random":
        return RandomPolicy(seed), {"name": name, "seed": seed}
    if not Path(name).is_dir():
        raise InputError(f"--logging: expected ranksvm, random, or the folder of a saved model, found '{name}'")
    return load_policy(Path(name)), {"name": "model", "folder": name}
