"""How often the interval of `assess` holds the true gain if users examine differently by device.

On desktop, 97 % of those who examine position 1 examine position 2, on mobile 62 %. The gain of a better ranker is
estimated with and without the column `device`, and compared with the true gain of its own lists on the same queries.

Run: python -m studies.context_coverage [--seeds 20] [--sessions 30000]
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import tyro

from cuolr.cli.terminal import show_table
from cuolr.clicks.click_model import relevance_of
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.simulated_context import SimulatedContext
from cuolr.data.synthetic import generate
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.assess import evaluate_off_policy
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import IntegerArray, RankingDataset

DESKTOP = PositionBasedModel(examination=(1, 0.97, 0.94, 0.91, 0.88, 0.85, 0.82, 0.80, 0.78, 0.76))
SEVERITY = float(np.log(0.62) / np.log(0.97))
MOBILE = replace(DESKTOP, eta=SEVERITY)
DEVICE = SimulatedContext("device", ("desktop", "mobile"), (0.6, 0.4), (1.0, SEVERITY))


@dataclass(frozen=True)
class Estimated:
    """A gain with its interval, and the true gain."""

    true: float
    gain: float
    interval: tuple[float, float]

    @property
    def covered(self) -> bool:
        """Whether the interval holds the true gain."""
        return self.interval[0] <= self.true <= self.interval[1]


@dataclass(frozen=True)
class Devices:
    """Logs of two devices, and a ranker that is better than the one that made them."""

    data: RankingDataset
    logger: RankingPolicy | StochasticLogger
    better: RankingPolicy

    @classmethod
    def of(cls, queries: int = 300, temperature: float | None = None) -> "Devices":
        """Generated queries; with a temperature, the logging policy is stochastic."""
        data = generate("tiny", queries, seed=3)
        policy = fit_ranksvm(data, 0.01, 1)
        logger = policy if temperature is None else StochasticLogger(policy, temperature)
        return cls(data, logger, fit_ranksvm(data, 1.0, 1))

    def estimates(self, sessions: int, seed: int) -> tuple[Estimated, Estimated]:
        """The gain of the better ranker, estimated with the device and without."""
        log = Simulation(self.data, self.logger, DESKTOP, sessions, 10, seed, contexts=(DEVICE,)).log()
        true = self.true_gain(log)
        found = [evaluate_off_policy(self.better, each) for each in (log, replace(log, context={}))]
        with_device, without = (Estimated(true, each.gain, each.interval) for each in found)
        return with_device, without

    def true_gain(self, log: ClickLog) -> float:
        """The relative change of the expected clicks if the better ranker shows its own lists in the same sessions."""
        ranking = self.better.rank(self.data.candidates, log.k)[log.query]
        expected = [self._clicks(log, lists) for lists in (log.ranking, ranking)]
        return expected[1] / expected[0] - 1

    def _clicks(self, log: ClickLog, ranking: IntegerArray) -> float:
        """The expected clicks if these lists [M, K] are shown in the sessions of a log."""
        where = ranking >= 0
        documents = np.where(where, self.data.candidates.offsets[log.query, None] + ranking, 0)
        relevance = relevance_of(self.data.relevance[documents], self.data.max_grade)
        desktop, mobile = (users.click_probability(relevance, where).sum(axis=1) for users in (DESKTOP, MOBILE))
        return float(np.where(log.context["device"] == "desktop", desktop, mobile).sum())


def main(seeds: int = 20, sessions: int = 30_000) -> None:
    """Print a table.

    Args:
        seeds: Number of logs.
        sessions: Number of sessions of each log.
    """
    heads = ["logging policy", "device", "true gain", "estimate", "mean interval", "intervals with the true gain"]
    show_table(f"{seeds} logs of {sessions:,} sessions", heads, list(_rows(seeds, sessions)), left=(0, 1))


def _rows(seeds: int, sessions: int) -> Iterator[list[str]]:
    for name, temperature in (("deterministic", None), ("stochastic", 1.0)):
        devices = Devices.of(temperature=temperature)
        pairs = [devices.estimates(sessions, seed) for seed in range(1, seeds + 1)]
        for known, found in zip(("known", "unknown"), zip(*pairs, strict=True), strict=True):
            true, gain = np.mean([each.true for each in found]), np.mean([each.gain for each in found])
            low, high = np.mean([each.interval for each in found], axis=0)
            covered = sum(each.covered for each in found)
            yield [name, known, f"{true:+.2%}", f"{gain:+.2%}", f"{low:+.2%} to {high:+.2%}", f"{covered} of {seeds}"]


if __name__ == "__main__":
    tyro.cli(main)
