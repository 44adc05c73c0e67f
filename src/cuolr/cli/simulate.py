"""`cuolr simulate`: a click log from a labelled data set."""

from pathlib import Path
from typing import Any

from cuolr.cli.options import ClickModelOptions, DataOptions, Name
from cuolr.cli.terminal import progress_bar, say, show_json
from cuolr.clicks.randomisation import randomise
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.errors import InputError, check_at_least
from cuolr.examination.propensities import PROPENSITY_FILE, Propensities, save_propensities
from cuolr.files import refuse_existing
from cuolr.logs.log_folder import SESSIONS_FILE
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.policies.store import SETTINGS_FILE, load_policy, save_policy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import RankingDataset


def simulate(
    data: Path,
    click_model: Name,
    sessions: int,
    out: Path,
    logging: Name = "ranksvm",
    fraction: float = 0.01,
    temperature: float | None = None,
    k: int = 10,
    seed: int = 1,
    click_options: ClickModelOptions = ClickModelOptions(),
    data_options: DataOptions = DataOptions(),
    keep_examination: bool = False,
    randomised_lists: int = 1_000_000,
    save_logging: Path | None = None,
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Simulate a click log: a logging policy ranks the training queries, and a click model samples the clicks.

    Args:
        data: Folder of a labelled data set.
        click_model: Name of a click model (`cuolr list click-models`), or a TOML file that describes one.
        sessions: Number of sessions.
        out: Folder of the log. It contains no labels.
        logging: Logging policy: ranksvm, random, or the folder of a saved model.
        fraction: Fraction of the training queries that ranksvm is trained on.
        temperature: Sample a new ranking in each session, from a Plackett-Luce model with this temperature. The log
            then has logging_propensity.
        k: Length of the lists.
        seed: The same seed gives the same log.
        click_options: Parameters of the click model.
        data_options: How to read the data set.
        keep_examination: Add the column examination, which real logs do not have.
        randomised_lists: Number of lists in random order to estimate propensity.json from, for ipw and cm-ipw; 0 = no
            estimates.
        save_logging: Save the logging policy as a model to this folder, to evaluate it.
        json: Print JSON instead of a message.
        overwrite: Replace an existing log and logging policy.
    """
    refuse_existing(out, overwrite, ours=SESSIONS_FILE)
    if save_logging is not None:
        refuse_existing(save_logging, overwrite, ours=SETTINGS_FILE)
        if save_logging.resolve().is_relative_to(out.resolve()) or out.resolve().is_relative_to(save_logging.resolve()):
            raise InputError(f"--save-logging: expected a folder outside the log, found {save_logging}")
    check_at_least("--randomised-lists", randomised_lists, 0)
    model = click_options.model(click_model)
    train = data_options.load(data)["train"]
    longest = int(train.candidates.sizes.max())
    if k > longest:
        say(f"note: lists have {longest} documents, not {k}: no query has more")
        k = longest
    policy, described = _logging_policy(logging, train, fraction, seed)
    logger: RankingPolicy | StochasticLogger = policy
    if temperature is not None:
        if not isinstance(policy, ScoringPolicy):
            raise InputError(f"--temperature: expected a logging policy that scores documents, found '{logging}'")
        logger = StochasticLogger(policy, temperature)
    simulation = Simulation(train, logger, model, sessions, k, seed, keep_examination)
    source = {"data": str(data), "fold": data_options.find(data).fold, "logging": described}
    propensities = None
    if randomised_lists:
        with progress_bar("randomising", 2 * randomised_lists) as progress:
            propensities = randomise(train, model, randomised_lists, k, seed, progress)

    def save_estimates(folder: Path) -> None:
        if propensities is not None:
            save_propensities(propensities, folder / PROPENSITY_FILE)

    with progress_bar("simulating", sessions) as progress:
        simulate_to(out, simulation, source, overwrite, progress, save_estimates)
    if propensities is not None and (unknown := _unknown_positions(propensities)):
        say(f"note: --randomised-lists {randomised_lists}: too few to estimate {'; '.join(unknown)}")
    if save_logging is not None:
        save_policy(policy, save_logging, source)
        say(f"wrote {save_logging}: the logging policy")
    if json:
        show_json({"out": str(out), "sessions": sessions, "k": k, "seed": seed, **source})
    else:
        say(f"wrote {out}: {sessions:,} sessions; describe it with: cuolr log-info {out}")


def _unknown_positions(propensities: Propensities) -> list[str]:
    """What is not known, a text each; of the last position continuation never is."""
    assert propensities.examination is not None
    estimates = {
        "examination": propensities.examination.values,
        "continuation": propensities.continuation["mle"].values[:-1],
    }
    unknown = {
        name: [str(position) for position, value in enumerate(values, start=1) if value is None]
        for name, values in estimates.items()
    }
    return [f"{name} at position {', '.join(positions)}" for name, positions in unknown.items() if positions]


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
