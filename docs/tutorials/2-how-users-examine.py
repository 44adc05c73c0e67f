# %% [markdown]
# # 2. How users examine a page: click models fitted, plotted, simulated
#
# Users of an engine examine from the top down and may stop after a click. Nobody knows how. This tutorial fits
# click models to a log, asks which one explains it best, and simulates the fitted users. The log is simulated,
# so that the answer is known.

# %%
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import cuolr
from cuolr.clicks.fitting.compare_fits import compare_fits
from cuolr.clicks.fitting.fit_model import with_errors
from cuolr.clicks.fitting.mixture_prior import fit_users
from cuolr.clicks.fitting.simulated_users import save_users
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.policies.plackett_luce import StochasticLogger

train, _, _ = cuolr.generate_splits("tiny", 100, 5, 5, seed=1)
production = StochasticLogger(cuolr.fit_ranksvm(train, 0.05), temperature=1.0)
log = cuolr.simulate(train, production, cuolr.click_model("dcm"), sessions=20_000, seed=1)
print(f"{log.sessions:,} sessions, {log.clicks.mean():.3f} clicks per shown document")

# %% [markdown]
# ## Which model explains the log?
#
# Each model is fitted to most of the sessions and predicts the others, click by click. A higher log-likelihood
# is better; a model is *as good* as the best if the difference is within noise. The cascade model allows one
# click per session, so that a session with two clicks is impossible under it: −inf.

# %%
patterns = ClickPatterns.of(log)
compared = compare_fits(patterns, ["pbm", "cascade", "dcm", "ubm", "ctr-position"])
for name, score in sorted(compared.scores.items(), key=lambda item: -item[1].log_likelihood):
    note = "best" if name == compared.best else "as good" if name in compared.as_good else ""
    print(f"{name:14} {score.log_likelihood:8.4f}  perplexity {score.perplexity:.4f}  {note}")

# %% [markdown]
# ## The users
#
# The parameters of DCM: the probability that users continue after a click at each position, with 95 % intervals.

# %%
users = with_errors(fit_users("dcm", patterns), patterns, samples=20)
estimate = users.values["continuation"][:-1]  # after the last position there is nothing to continue to
low, high = (end[:-1] for end in users.interval("continuation"))
position = np.arange(1, len(estimate) + 1)
_, axes = plt.subplots(figsize=(6, 3))
axes.errorbar(position, estimate, [estimate - low, high - estimate], fmt="o", label="fitted, 95 % interval")
axes.plot(position, cuolr.click_model("dcm").continuation[: len(estimate)], "_", markersize=14, label="true")
axes.set(
    xlabel="position of the click", ylabel="probability of continuing", ylim=(0, 1.02), title="Users of this log (DCM)"
)
axes.legend()
plt.show()

# %% [markdown]
# ## Simulate them
#
# The fitted users are a file. `cuolr simulate --data LOG --click-model users.toml` lets them click on other
# lists, so that every learner can be tried before anybody is exposed to it.

# %%
file = Path(mkdtemp()) / "users.toml"
save_users(users, patterns, file)
print("\n".join(file.read_text().splitlines()[:12]))
