# %% [markdown]
# # 4. A learner of your own
#
# A learner is one class: it takes a log and returns a policy. This one fits a linear model to click counts that
# are divided by the click rate of their position. It is registered under a name, and then has everything that
# others have: validation, saving, `assess`, experiments and the tuner. In a package of your own, an entry point
# takes the place of the import ([plug-ins](../plug-ins.md)).

# %%
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import cuolr
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.training.base_learner import LEARNERS, FitTask, Learner


@dataclass(frozen=True)
class OverRankConfig:
    """Settings of the learner.

    Attributes:
        smoothing: Clicks that every document has before the first session.
    """

    smoothing: float = 1.0


@LEARNERS.register("over-rank")
class OverRank(Learner):
    """Clicks over what is expected at the position (COEC), as a linear function of the features."""

    Config = OverRankConfig
    config: OverRankConfig
    role = "baseline"

    def fit(self, task: FitTask) -> LinearPolicy:
        """A regression of log (clicks / expected clicks)."""
        log = task.log.select(np.flatnonzero(~np.isin(task.log.query, task.held_out)))  # held-out queries validate
        count = log.count[:, None] * log.where
        rate = (log.clicks * count).sum(axis=0) / count.sum(axis=0)
        clicks, expected = np.full((2, log.candidates.n_documents), self.config.smoothing)
        np.add.at(clicks, log.documents[log.where], (log.clicks * count)[log.where])
        np.add.at(expected, log.documents[log.where], (rate * count)[log.where])
        scaled = task.normaliser.apply(log.candidates).features
        weights, *_ = np.linalg.lstsq(scaled, np.log(clicks / expected), rcond=None)
        return LinearPolicy(weights.astype(np.float32), task.normaliser)


# %% [markdown]
# ## Does it learn?
#
# On simulated clicks, whose labels are known, beside two others. It assumes that every position shows documents
# of the same quality, which no good ranker does: a document pays for standing among good ones.

# %%
train, validation, test = cuolr.generate_splits("tiny", 200, 50, 200, seed=1)
production = cuolr.fit_ranksvm(train, 0.02)
log = cuolr.simulate(train, production, cuolr.click_model("pbm"), sessions=20_000)
print("production", cuolr.evaluate(production, test, ["ndcg@10"]).means())
for name in ("over-rank", "naive"):
    ranker = cuolr.Ranker(name, steps=100).fit(log, validation)
    print(f"{name:10}", cuolr.evaluate(ranker, test, ["ndcg@10"]).means())

# %% [markdown]
# ## Does it behave as a policy should?
#
# A policy ranks each candidate once, and is the same after saving and loading.

# %%

ranker = cuolr.Ranker("over-rank").fit(log, validation)
ranker.save(Path(mkdtemp()) / "MODEL")
ranking = ranker.rank(test.candidates, k=10)
assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in ranking)
print(ranking[:3])
