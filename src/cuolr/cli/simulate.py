"""`cuolr simulate`: simulate a click log on a labelled data set, or of fitted users on their own log."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from cuolr.cli.options import ClickModelOptions, DataOptions, Name
from cuolr.cli.terminal import progress_bar, say, show_json, stage_bars
from cuolr.clicks.fitting.simulated_users import UserSimulation, load_users
from cuolr.clicks.randomisation import randomise
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.clicks.simulated_context import SimulatedContext
from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.examination.propensities import PROPENSITY_FILE, Propensities, save_propensities
from cuolr.files import refuse_existing
from cuolr.logs.log_folder import SESSIONS_FILE, load_click_log, write_click_log
from cuolr.policies.model_folder import SETTINGS_FILE, load_policy, save_policy
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.random import DEFAULT_SEED
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import RankingDataset

# The logging policy of a labelled data set unless another is named.
RANKSVM = "ranksvm"


@dataclass(frozen=True)
class LogOptions:
    """The log.

    Attributes:
        sessions: Number of sessions.
        out: Folder of the log. It contains no labels.
        k: Length of the lists.
        seed: The same seed gives the same log.
        keep_examination: Add the column examination, which real logs do not have.
        context: Add a column of context, such as `device=desktop:0.6,mobile:0.4:2`: each value with its share of the
            sessions and, if it is not 1, the severity of its position bias, the power of the examination
            probabilities.
        randomised_lists: Number of randomised lists to estimate propensity.json from, for ipw and cm-ipw; 0 = no
            estimates.
        overwrite: Replace an existing log and logging policy.
    """

    sessions: int
    out: Path
    k: int = 10
    seed: int = DEFAULT_SEED
    keep_examination: bool = False
    context: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE:SHARE[:SEVERITY],…"), tyro.conf.UseAppendAction
    ] = ()
    randomised_lists: int = 1_000_000
    overwrite: bool = False


@dataclass(frozen=True)
class LoggingOptions:
    """The logging policy.

    Attributes:
        logging: Logging policy: ranksvm, random, or the folder of a saved model. By default ranksvm; on a log, the
            logged lists.
        fraction: Fraction of the training queries that ranksvm is trained on.
        temperature: Sample a new ranking in each session, from a Plackett-Luce model with this temperature. The log
            then has logging_propensity.
        save_logging: Save the logging policy as a model to this folder, to evaluate it.
    """

    logging: Name | None = None
    fraction: float = 0.01
    temperature: float | None = None
    save_logging: Path | None = None

    def check(self, log: Path, overwrite: bool) -> None:
        """Raise, before any work, if the logging policy cannot be saved or would be saved into the log."""
        if self.save_logging is None:
            return
        folder, log = self.save_logging.resolve(), log.resolve()
        if folder.is_relative_to(log) or log.is_relative_to(folder):
            raise InputError(f"--save-logging: expected a folder outside the log, found {self.save_logging}")
        refuse_existing(self.save_logging, overwrite, ours=SETTINGS_FILE)

    def policy(self, train: RankingDataset, seed: int) -> tuple[RankingPolicy, dict[str, Any]]:
        """The policy, and its entry in the log's description."""
        name = self.logging or RANKSVM
        if name == RANKSVM:
            described = {"name": name, "fraction": self.fraction, "seed": seed}
            return fit_ranksvm(train, self.fraction, seed), described
        return self._unsupervised(name, seed)

    def _unsupervised(self, name: str, seed: int) -> tuple[RankingPolicy, dict[str, Any]]:
        if name == "random":
            return RandomPolicy(seed), {"name": name, "seed": seed}
        if not Path(name).is_dir():
            raise InputError(f"--logging: expected ranksvm, random, or the folder of a saved model, found '{name}'")
        return load_policy(Path(name)), {"name": "model", "folder": name}

    def policy_on_log(self, seed: int) -> tuple[RankingPolicy | None, dict[str, Any]]:
        """The policy on the documents of a log, and its entry in the log's description; None = the logged lists."""
        if self.temperature is not None or self.save_logging is not None:
            flag = "--temperature" if self.temperature is not None else "--save-logging"
            raise InputError(f"{flag}: not possible if --data is a click log")
        if self.logging == RANKSVM:
            raise InputError("--logging ranksvm: needs labels, but --data is a click log; omit it or name another")
        if self.logging is None:
            return None, {"name": "log"}
        return self._unsupervised(self.logging, seed)

    def logger(self, policy: RankingPolicy) -> RankingPolicy | StochasticLogger:
        """The policy, or a logger that samples rankings from it."""
        if self.temperature is None:
            return policy
        if not isinstance(policy, ScoringPolicy):
            raise InputError(
                f"--temperature: expected a logging policy that scores documents, found '{self.logging or RANKSVM}'"
            )
        return StochasticLogger(policy, self.temperature)


def simulate(
    data: Path,
    users: ClickModelOptions,
    log: LogOptions,
    logging_policy: LoggingOptions = LoggingOptions(),
    json: bool = False,
    data_options: DataOptions = DataOptions(),
) -> None:
    """Simulate a click log: a logging policy ranks the training queries, and a click model samples the clicks.

    If the data is a click log, the users that `cuolr fit-clicks` fitted to it are simulated on its own queries and
    documents, without labels: on the logged lists, or on those of a model (--logging).

    Args:
        data: Folder of a labelled data set, or of a click log.
        users: Parameters of the click model.
        log: The log.
        logging_policy: The logging policy.
        json: Print JSON instead of a message.
        data_options: How to read the data set.
    """
    logging_policy.check(log.out, log.overwrite)
    refuse_existing(log.out, log.overwrite, ours=SESSIONS_FILE)
    check_arguments(**{"--randomised-lists": (log.randomised_lists, Range(0))})
    if (data / SESSIONS_FILE).is_file():
        _simulate_users(data, users, log, logging_policy, json)
        return
    model, contexts = users.model(), tuple(SimulatedContext.parse(text) for text in log.context)
    train = data_options.load(data)["train"]
    longest = int(train.candidates.sizes.max())
    if log.k > longest:
        say(f"note: lists have {longest} documents instead of {log.k}, because no query has more")
    k = min(log.k, longest)
    policy, described = logging_policy.policy(train, log.seed)
    logger = logging_policy.logger(policy)
    simulation = Simulation(train, logger, model, log.sessions, k, log.seed, log.keep_examination, contexts)
    source = {"data": str(data), "fold": data_options.find(data).fold, "logging": described}
    propensities = None
    if log.randomised_lists:
        with progress_bar("randomising", 2 * log.randomised_lists) as progress:
            propensities = randomise(train, model, log.randomised_lists, k, log.seed, progress, contexts=contexts)

    def save_estimates(folder: Path) -> None:
        if propensities is not None:
            save_propensities(propensities, folder / PROPENSITY_FILE)

    with progress_bar("simulating", log.sessions) as progress:
        simulate_to(log.out, simulation, source, log.overwrite, progress, save_estimates)
    if propensities is not None and (unknown := _unknown_positions(propensities)):
        say(f"note: --randomised-lists {log.randomised_lists}: too few to estimate {'; '.join(unknown)}")
    if logging_policy.save_logging is not None:
        save_policy(policy, logging_policy.save_logging, source)
        say(f"wrote {logging_policy.save_logging}: the logging policy")
    if json:
        show_json({"out": str(log.out), "sessions": log.sessions, "k": k, "seed": log.seed, **source})
    else:
        say(f"wrote {log.out}: {log.sessions:,} sessions; describe it with: cuolr log-info {log.out}")


def _simulate_users(
    data: Path, users: ClickModelOptions, log: LogOptions, logging_policy: LoggingOptions, json: bool
) -> None:
    """Simulate fitted users on the documents of a click log."""
    if log.out.resolve() == data.resolve():
        raise InputError(f"--out: {log.out} is the log to simulate on; choose another folder")
    for flag, given in (("--keep-examination", log.keep_examination), ("--context", log.context)):
        if given:
            raise InputError(f"{flag}: not possible if --data is a click log")
    policy, described = logging_policy.policy_on_log(log.seed)
    with stage_bars() as stages:
        logged = load_click_log(data, stages=stages)
    fitted = load_users(users.fitted_file(), logged.candidates)
    simulation = UserSimulation(logged, fitted, log.sessions, policy, min(log.k, fitted.model.k), log.seed)
    source = {"data": str(data), "users": users.click_model, "logging": described, "seed": log.seed}
    clicks = simulation.expected_clicks()
    with progress_bar("simulating", log.sessions) as progress:
        write_click_log(log.out, simulation.blocks(progress), source, log.overwrite)
    if fitted.known < 1:
        say(f"note: {1 - fitted.known:.1%} of the documents have no sessions in the fit: they have the learned mean")
    if json:
        show_json({"out": str(log.out), "sessions": log.sessions, "expected_clicks_per_session": clicks, **source})
    else:
        say(f"expected clicks per session: {clicks:.4f}")
        say(f"wrote {log.out}: {log.sessions:,} sessions; describe it with: cuolr log-info {log.out}")


def _unknown_positions(propensities: Propensities) -> list[str]:
    """The positions without an estimate, one string per kind; continuation at the last position never has one."""
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
