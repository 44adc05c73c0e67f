"""How often the interval of `assess` has the true gain, and how often it recommends to ship what gains nothing.

For each kind of users and logging policy: logs of fresh queries, and policies that did not learn from them. The truth
is the gain in expected clicks, in closed form, on other queries of the same kind. Results are kept in a file, a row for
each log and policy, with the trained models beside it; the same command continues where it was stopped. With random
lists, "the logger" is its order without noise; if production changed in the middle of the log, the later ranker.

Log 1 of every setting comes first, then log 2 of every setting, so that a study that was stopped has as many of each.

Run: python -m studies.gain_coverage --out coverage.parquet [--users pbm dcm] [--loggers swaps] [--logs 40]
Tables alone, as Markdown: python -m studies.gain_coverage --out coverage.parquet --logs 0
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from cuolr import Ranker, click_model, fit_ranksvm, simulate
from cuolr.cli.terminal import say
from cuolr.clicks.click_model import ClickModel, relevance_of
from cuolr.data.synthetic import World
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.off_policy.assess import assess
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from cuolr.off_policy.users_of_log import UsersOfLog
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.types import Candidates, Doubles, IntegerArray, Ints, RankingDataset
from studies.coverage_tables import Line, markdown, save_runs, saved_runs

K = 10
USERS = ("pbm", "cascade", "dcm", "ccm", "ubm", "dbn", "sdbn", "trust", "mixture", "perfect")
POLICIES = ("better", "worse", "default", "logger")
LOGGERS = ("one-list-weak", "one-list-strong", "lambdamart-same", "plackett-luce-0.25", "plackett-luce-1", "swaps")
# Production that changed in the middle of the log: from one list per query to another, or from random lists to one.
CHANGED = ("changed", "changed-random")
# Streams of random queries, never shared: those that rankers are fitted to, those of the truth, and those of the logs.
FITTED, TRUTH, TRAINING, FIRST_LOG = 1, 2, 3, 100
# The rules of `assess` were made while looking at some of the logs before this one.
FIRST_NEW_LOG = 20
# Share of the sessions in which two neighbours are swapped.
SWAPPED = 0.05
# A logging policy: with one list per query, or one that draws its lists.
Production = RankingPolicy | StochasticLogger
# Draws of a stochastic logging policy for the truth.
DRAWS = 4


@dataclass(frozen=True)
class Size:
    """The sizes of a run.

    Attributes:
        queries: Queries of a log.
        documents: Documents of a query; 10 = all of them are always shown.
        sessions: Sessions per query.
        training_sessions: Sessions per query of the log that the default learner is trained on.
        truth: Queries for the truth.
        steps: Training steps of the default learner.
    """

    queries: int = 300
    documents: int = 20
    sessions: int = 200
    training_sessions: int = 30
    truth: int = 20_000
    steps: int = 40


WHOLE = Size()


class Queries:
    """Queries in the likeness of MSLR-WEB10K, all with as many documents; each stream has fresh ones."""

    def __init__(self, documents: int, seed: int = 7) -> None:
        self._world, self._documents = World("web10k-like", seed), documents
        self._kept: dict[tuple[int, int], RankingDataset] = {}
        self._rankers: dict[tuple[float, int], LinearPolicy] = {}

    def draw(self, number: int, stream: int) -> RankingDataset:
        """Labelled queries."""
        sizes = np.full(number, self._documents)
        features, relevance = self._world.draw_documents(sizes, np.random.default_rng([7, stream]))
        offsets = np.arange(number + 1) * self._documents
        candidates = Candidates(features, offsets, np.arange(number).astype(np.str_))
        return RankingDataset(candidates, relevance.astype(np.int8), len(self._world.preset.grades) - 1)

    def kept(self, number: int, stream: int) -> RankingDataset:
        """Labelled queries that all settings share."""
        if (number, stream) not in self._kept:
            self._kept[number, stream] = self.draw(number, stream)
        return self._kept[number, stream]

    @property
    def fitted(self) -> RankingDataset:
        """The queries that production and other rankers were fitted to."""
        return self.kept(1_000, FITTED)

    def ranker(self, fraction: float, seed: int = 1) -> LinearPolicy:
        """A linear ranker that was fitted to a fraction of these queries."""
        if (fraction, seed) not in self._rankers:
            self._rankers[fraction, seed] = fit_ranksvm(self.fitted, fraction, seed=seed)
        return self._rankers[fraction, seed]


@dataclass(frozen=True)
class NeighboursSwapped(LinearPolicy):
    """A ranker whose documents at two neighbouring positions are swapped."""

    position: int = 0

    def rank(self, candidates: Candidates, k: int) -> Ints:
        """[n_queries, k] its ranking, with the swap."""
        ranking = super().rank(candidates, k)
        order = np.arange(k)
        order[[self.position, self.position + 1]] = order[[self.position + 1, self.position]]
        return ranking[:, order]


@dataclass(frozen=True)
class Setting:
    """A kind of users and a logging policy."""

    users: str
    logger: str
    size: Size
    queries: Queries

    @property
    def click_model(self) -> ClickModel:
        """The users."""
        return click_model(self.users)

    def production(self, data: RankingDataset) -> Production:
        """The logging policy on these queries; the earlier one, if it changed."""
        if self.logger == "lambdamart-same":
            return fit_lambdamart(data, None, LambdaMartSettings(trees=60, leaves=15, learning_rate=0.1, threads=1))
        ranker = self.queries.ranker(1.0 if self.logger == "one-list-strong" else 0.01)
        temperature = "0.25" if self.logger == "changed-random" else self.logger.removeprefix("plackett-luce-")
        if temperature == self.logger:
            return ranker
        spread = float(np.std(ranker.score(self.queries.fitted.candidates)))
        return StochasticLogger(ranker, spread * float(temperature))

    def shown(self, production: Production) -> list[tuple[Production, float]]:
        """What production shows, with the share of the sessions."""
        if self.logger in CHANGED:
            return [(production, 0.5), (self.queries.ranker(0.03), 0.5)]
        if self.logger != "swaps":
            return [(production, 1.0)]
        assert isinstance(production, LinearPolicy)
        swaps = [swapped(production, position) for position in range(K - 1)]
        return [(production, 1 - SWAPPED), *((policy, SWAPPED / len(swaps)) for policy in swaps)]

    def log(self, data: RankingDataset, production: Production, seed: int, per_query: int) -> ClickLog:
        """So many sessions per query."""
        sessions = per_query * data.candidates.n_queries
        first, *others = self.shown(production)
        if not others:
            return simulate(data, production, self.click_model, sessions=sessions, k=K, seed=seed)
        numbers = [round(share * sessions) for _, share in others]
        parts = [
            simulate(data, policy, self.click_model, sessions=number, k=K, seed=seed * K + part)
            for part, ((policy, _), number) in enumerate(
                zip([first, *others], [sessions - sum(numbers), *numbers], strict=True)
            )
        ]
        # Of lists that are drawn, the propensity is known; a log has it for all lists, or for none.
        return concatenate([replace(part, logging_propensity=None) for part in parts], sessions)

    def trained(self, folder: Path) -> RankingPolicy:
        """The default learner's policy, trained once and saved."""
        if not folder.exists():
            train = self.queries.draw(self.size.queries, TRAINING)
            log = self.log(train, self.production(train), 1, self.size.training_sessions)
            Ranker(steps=self.size.steps).fit(log).save(folder)
        return Ranker.load(folder).policy_

    def policies(self, names: Sequence[str], models: Path) -> dict[str, RankingPolicy]:
        """What is evaluated, but for the logging policy itself."""
        weak = self.queries.ranker(0.01)
        any_weights = np.random.default_rng(5).standard_normal(len(weak.weights)).astype(np.float32)
        makers: dict[str, Callable[[], RankingPolicy]] = {
            "better": lambda: self.queries.ranker(1.0, seed=2),
            "worse": lambda: replace(weak, weights=any_weights),
            "default": lambda: self.trained(models / f"{self.users}-{self.logger}"),
        }
        return {name: makers[name]() for name in names if name in makers}

    def clicks(self, data: RankingDataset, ranking: IntegerArray) -> Doubles:
        """[n_queries] expected clicks, in closed form."""
        where = ranking >= 0
        documents = np.where(where, data.candidates.offsets[:-1, None] + ranking, 0)
        relevance = relevance_of(data.relevance[documents], data.max_grade)
        total: Doubles = self.click_model.click_probability(relevance, where).sum(axis=1)
        return total

    def production_clicks(self, data: RankingDataset, production: Production) -> float:
        """The expected clicks of production, per session."""
        return sum(share * self._clicks_shown(data, policy) for policy, share in self.shown(production))

    def _clicks_shown(self, data: RankingDataset, policy: Production) -> float:
        if isinstance(policy, RankingPolicy):
            return float(self.clicks(data, policy.rank(data.candidates, K)).mean())
        number = data.candidates.n_queries * DRAWS
        drawn = simulate(data, policy, self.click_model, sessions=number, k=K, seed=11)
        return float(self.clicks(data.select(drawn.query.astype(np.int64)), drawn.ranking).mean())


def swapped(ranker: LinearPolicy, position: int) -> NeighboursSwapped:
    """The ranker with the documents at `position` and below it swapped."""
    return NeighboursSwapped(**{name: getattr(ranker, name) for name in ranker.__dataclass_fields__}, position=position)


@dataclass(frozen=True)
class Evaluation:
    """The policies of a setting, and what is known of them before any log.

    Attributes:
        setting: Users and logging policy.
        policies: What is evaluated, but for the logging policy itself.
        with_logger: Whether the logging policy itself is evaluated, too.
    """

    setting: Setting
    policies: dict[str, RankingPolicy]
    with_logger: bool

    def lines(self, number: int, true_gains: dict[str, float]) -> list[Line]:
        """A line of one log for each policy; a ranker of the log's labels has its true gains on the log's queries."""
        setting = self.setting
        data = setting.queries.draw(setting.size.queries, FIRST_LOG + number)
        production = setting.production(data)
        log = setting.log(data, production, FIRST_LOG + number, setting.size.sessions)
        true_gains = true_gains or self.true_gains(data)
        users = UsersOfLog.fit(log)
        return [
            {
                "users": setting.users,
                "logger": setting.logger,
                "log": number,
                "policy": name,
                "size": asdict(setting.size),
                "truth": true_gains[name],
                **_estimates(assess(policy, log, users=users)),
            }
            for name, policy in self._evaluated(production).items()
        ]

    def true_gains(self, data: RankingDataset) -> dict[str, float]:
        """The gain of each policy over production on these queries, in closed form."""
        production = self.setting.production(data)
        base = self.setting.production_clicks(data, production)
        return {
            name: float(self.setting.clicks(data, policy.rank(data.candidates, K)).mean()) / base - 1
            for name, policy in self._evaluated(production).items()
        }

    def _evaluated(self, production: Production) -> dict[str, RankingPolicy]:
        if not self.with_logger:
            return self.policies
        latest = self.setting.shown(production)[-1][0]
        return {**self.policies, "logger": latest if isinstance(latest, RankingPolicy) else latest.policy}


def _estimates(found: OffPolicyEvaluation) -> dict[str, Any]:
    return {
        "gain": found.gain,
        "interval": [float(end) for end in found.interval],
        "recommendation": found.recommendation,
        "identifiable": found.identifiable,
        "plausible": [e.estimator for e in found.estimates],
    }


queries_of = cache(Queries)


@cache
def evaluation_of(setting: Setting, names: tuple[str, ...], models: Path) -> tuple[Evaluation, dict[str, float]]:
    """The policies of these names, and their true gains if these are not of each log's own queries.

    Args:
        setting: Users and logging policy.
        names: The names.
        models: Folder of trained models, by size.
    """
    folder = models / "-".join(str(value) for value in asdict(setting.size).values())
    found = Evaluation(setting, setting.policies(names, folder), "logger" in names)
    if setting.logger == "lambdamart-same":
        return found, {}
    return found, found.true_gains(setting.queries.kept(setting.size.truth, TRUTH))


def lines_of(log: tuple[str, str, int | None], size: Size, policies: tuple[str, ...], models: Path) -> list[Line]:
    """The lines of a log; without a number, what the logs of its setting share is made, and no line.

    Args:
        log: Users, logging policy and number of the log.
        size: Sizes.
        policies: What is evaluated.
        models: Folder of trained models.
    """
    torch.set_num_threads(1)
    users, logger, number = log
    evaluation, true_gains = evaluation_of(Setting(users, logger, size, queries_of(size.documents)), policies, models)
    return [] if number is None else evaluation.lines(number, true_gains)


def main(
    out: Path,
    users: tuple[str, ...] = USERS,
    loggers: tuple[str, ...] = LOGGERS,
    logs: int = 40,
    first: int = FIRST_NEW_LOG,
    size: Size = WHOLE,
    policies: tuple[str, ...] = POLICIES,
    processes: int = 1,
) -> None:
    """Run what is missing, and print the tables as Markdown.

    Args:
        out: Parquet file of results, a row for each log and policy.
        users: Kinds of users.
        loggers: Logging policies.
        logs: Number of logs for each.
        first: Number of the first log.
        size: Sizes.
        policies: What is evaluated; `default` is trained first.
        processes: Number of processes.
    """
    lines = saved_runs(out)
    seen = {_key(line) for line in lines if line["size"] == asdict(size)}
    settings = list(itertools.product(users, loggers))
    missing = [
        (kind, logger, number)
        for number, (kind, logger) in itertools.product(range(first, first + logs), settings)
        if any((kind, logger, number, policy) not in seen for policy in policies)
    ]
    say(f"{len(missing)} logs")
    work = partial(lines_of, size=size, policies=policies, models=out.with_suffix(".models"))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # Two processes that train the same model would get in each other's way.
        unshared = dict.fromkeys((kind, logger, None) for kind, logger, _ in missing)
        for _ in pool.map(work, unshared):
            pass
        for of_log in pool.map(work, missing):
            lines += [line for line in of_log if _key(line) not in seen]
            save_runs(out, lines)
    print("\n".join(markdown(lines)))


def _key(line: Line) -> tuple[str, str, int, str]:
    return line["users"], line["logger"], line["log"], line["policy"]


if __name__ == "__main__":
    tyro.cli(main)
