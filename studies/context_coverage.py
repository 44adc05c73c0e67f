"""How often the interval of `assess` holds the true gain if users examine differently by device.

On desktop, 97 % of those who examine position 1 examine position 2, on mobile 62 %. The gain of a better ranker is
estimated with and without the column `device`, and compared with the true gain on the same lists.

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
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.assess import evaluate_off_policy
from cuolr.off_policy.reordering import model_order
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import RankingDataset

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
        """The relative change of the expected clicks on the lists of a log, re-ordered by the better ranker."""
        lists = aggregate(replace(log, logging_propensity=None))
        relevance = relevance_of(self.data.relevance[lists.documents], self.data.max_grade).astype(np.float64)
        rate = DESKTOP.attractiveness(relevance) * lists.where
        desktop, mobile = (model.examination_probability(relevance) for model in (DESKTOP, MOBILE))
        exposure = np.where((lists.context["device"] == "desktop")[:, None], desktop, mobile) * lists.count[:, None]
        positions = np.argsort(~lists.where, axis=1, kind="stable")
        order = model_order(self.better, lists, np.unique(lists.query).astype(np.int64), positions)
        logged, reordered = (float((np.take_along_axis(rate, o, axis=1) * exposure).sum()) for o in (positions, order))
        return reordered / logged - 1


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
