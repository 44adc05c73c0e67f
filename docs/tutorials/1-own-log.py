# %% [markdown]
# # 1. From your own log to a ranker and a decision
#
# A shop's search, week by week: import week 1, train, assess on week 2, retrain. The shop is made up, and its
# log is as logs are: positions with gaps where an advertisement stood, delisted products, missing values, a
# category, purchases beside clicks, phones and desktops.

# %%
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import polars as pl

import cuolr

QUERIES, PRODUCTS, SHOWN = 60, 12, 8
RNG = np.random.default_rng(1)

# %% [markdown]
# The shop. What buyers like is known to nobody but the simulation below.

# %%
products = pl.DataFrame(
    {
        "product_id": [f"p{i}" for i in range(QUERIES * PRODUCTS)],
        "query": np.repeat([f"query {i}" for i in range(QUERIES)], PRODUCTS),
        "quality": RNG.random(QUERIES * PRODUCTS).round(3),
        "margin": RNG.random(QUERIES * PRODUCTS).round(3),
        "brand": RNG.choice(["Acme", "Globex", "Initech"], QUERIES * PRODUCTS),
        "reviews": pl.Series(RNG.integers(0, 500, QUERIES * PRODUCTS)).replace({0: None}),
    }
).with_columns(reviews=pl.when(pl.col("quality") > 0.2).then("reviews"))  # no review yet: missing
appeal = (0.05 + 0.5 * products["quality"] * (1 - 0.5 * (products["brand"] == "Initech"))).to_numpy()
production = products["margin"].to_numpy()  # the current ranking: by margin, with some exploration


# %%
def week(number: int, sessions: int = 6_000) -> pl.DataFrame:
    """What was shown and clicked in a week, as the shop logs it."""
    rows = []
    for session in range(sessions):
        query, phone = int(RNG.integers(QUERIES)), bool(RNG.random() < 0.4)
        mine = np.arange(query * PRODUCTS, (query + 1) * PRODUCTS)
        ranked = mine[np.argsort(-production[mine] + 0.3 * RNG.gumbel(size=PRODUCTS))][:SHOWN]
        minute = f"2026-11-{7 * number - 6 + session * 7 // sessions:02}T12:{session % 60:02}:00"
        for rank, product in enumerate(ranked, start=1):
            position = rank + (rank > 3)  # an advertisement stands at position 4
            clicked = RNG.random() < appeal[product] * position ** (-1.0 if phone else -0.4)
            bought = clicked and RNG.random() < 0.2
            row = (f"query {query}", f"w{number}-{session}", position, f"p{product}", int(clicked), int(bought))
            rows.append((*row, "phone" if phone else "desktop", minute))
    names = ["query", "session_id", "position", "product_id", "click", "purchase", "device", "timestamp"]
    return pl.DataFrame(rows, schema=names, orient="row")


# %% [markdown]
# ## Week 1 comes in
#
# Five products were delisted since: their impressions are counted, not lost silently.

# %%
features = cuolr.FeatureTables(document=products.drop("query")[5:])
options = {
    "columns": {"query_id": "query", "doc_id": "product_id"},
    "reward": "click=1,purchase=5",
    "context": ["device"],
    "max_dropped": 0.05,
}
week_1, report = cuolr.import_log_with_report(week(1), features, cuolr.ImportOptions(**options))
print("week 1:", report.summary())

# %% [markdown]
# Train: no labels are needed. Some queries are held out to choose the step.

# %%
model = cuolr.Ranker("lightgbm", steps=60, settings={"learner.min_documents_per_leaf": 20}).fit(week_1)

# %% [markdown]
# ## Week 2 decides
#
# Its columns are encoded as in week 1. The log says whether the model would have been better.

# %%
as_week_1 = cuolr.FeatureTables(document=products.drop("query")[5:], recipe=week_1.candidates.recipe)
week_2, report = cuolr.import_log_with_report(week(2), as_week_1, cuolr.ImportOptions(**options))
print("week 2:", report.summary())
evaluation = model.assess(week_2)
print(f"model of week 1, assessed on week 2: {evaluation.recommendation}: {evaluation.reason}")

# %% [markdown]
# ## Retrain on both weeks
#
# A log on disk can be merged, described and trained on by the command line, too.

# %%
folder = Path(mkdtemp())
cuolr.save_click_log(week_1, folder / "week-1")
cuolr.save_click_log(week_2, folder / "week-2")
merged = cuolr.merge_logs([folder / "week-1", folder / "week-2"], folder / "both")
both = cuolr.load_click_log(folder / "both")
print(f"both weeks: {merged.sessions:,} sessions, {merged.documents} products; {merged.repeated} sessions were in both")
retrained = cuolr.Ranker("lightgbm", steps=60, settings={"learner.min_documents_per_leaf": 20}).fit(both)
retrained.save(folder / "model")
best = dict(
    zip(both.candidates.query_ids, cuolr.Ranker.load(folder / "model").rank_ids(both.candidates, k=3), strict=True)
)
print("best products of query 7:", best["query 7"].tolist())
