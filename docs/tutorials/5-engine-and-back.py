# %% [markdown]
# # 5. From a model to a search engine and back
#
# A model is worth something once users see its lists. This tutorial goes around the circle once: a log becomes
# a model, the model a file that a search engine reads, `cuolr serve` shows lists and writes down what is
# clicked, and that log trains the next model. No engine is needed to follow it: twenty lines of Python do what
# the plug-in of Elasticsearch does.

# %%
import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import polars as pl

import cuolr
from cuolr.distillation.distil import distil
from cuolr.distillation.student import StudentConfig
from cuolr.export.export_model import export_folder

QUERIES, PRODUCTS, SHOWN = 80, 15, 8
RNG = np.random.default_rng(5)
FOLDER = Path(mkdtemp())

# %% [markdown]
# A shop's catalogue. Buyers like what is cheap and well rated, which only the simulation knows; production
# sorts by margin.

# %%
products = pl.DataFrame(
    {
        "query_id": np.repeat([f"query {i}" for i in range(QUERIES)], PRODUCTS),
        "doc_id": [f"p{i}" for i in range(QUERIES * PRODUCTS)],
        "price": RNG.uniform(5, 100, QUERIES * PRODUCTS).round(2),
        "stars": RNG.uniform(1, 5, QUERIES * PRODUCTS).round(1),
        "margin": RNG.random(QUERIES * PRODUCTS).round(3),
    }
)
appeal = ((1 - products["price"] / 100) * products["stars"] / 5).to_numpy().clip(0.02, 0.9)
examination = np.array([1.0, 0.8, 0.6, 0.45, 0.35, 0.3, 0.25, 0.2])  # by position


def clicks_on(shown: np.ndarray) -> np.ndarray:
    """Whether each product of a list is clicked: if it is examined and appeals."""
    return RNG.random(len(shown)) < examination[: len(shown)] * appeal[shown]


rows = []
for session in range(6_000):
    query = int(RNG.integers(QUERIES))
    mine = np.arange(query * PRODUCTS, (query + 1) * PRODUCTS)
    shown = mine[np.argsort(-products["margin"].to_numpy()[mine] + 0.2 * RNG.gumbel(size=PRODUCTS))][:SHOWN]
    for position, (product, click) in enumerate(zip(shown, clicks_on(shown), strict=True), start=1):
        time = f"2025-03-{1 + session * 7 // 6_000:02}T12:00:00"
        rows.append((f"query {query}", f"s{session}", time, position, f"p{product}", int(click)))
names = ["query_id", "session_id", "timestamp", "position", "doc_id", "click"]
table = pl.DataFrame(rows, names, orient="row")
log = cuolr.import_log(table, products)
print(f"{log.sessions:,} sessions, {log.clicks.mean():.3f} clicks per shown product")

# %% [markdown]
# ## A model that the engine can hold
#
# The model here is a network on examination-corrected clicks. The Learning to Rank plug-in takes trees and
# linear models only. So the network is the *teacher* of a *student*, regression trees that score documents as
# it does ([distillation](../distil.md)). `cuolr train` puts such a student into the folder of a model by
# itself.

# %%
teacher = cuolr.Ranker("dla", steps=150, batch_size=64, settings={"training.validate_every": 50}).fit(log).policy_
distilled = distil(teacher, log.candidates, "trees", StudentConfig(trees=100))
cuolr.save_policy(distilled.student, FOLDER / "STUDENT")
print(f"{distilled.agreement:.0%} of the teacher's top 10 are in the student's, on {distilled.held_out} other queries")

# %% [markdown]
# ## Export
#
# The file is compared with the model before it is written: on made-up documents, at every threshold of the
# trees, with missing values. On the command line: `cuolr export STUDENT --to elasticsearch-ltr --name shop
# --out shop.json`.

# %%
exported = export_folder(FOLDER / "STUDENT", "elasticsearch-ltr", FOLDER / "shop.json", name="shop")
print(exported.form, [file.name for file in exported.files])
print(f"largest difference of scores: {exported.check.max_difference:.1e}")
definition = json.loads(json.loads((FOLDER / "shop.json").read_text())["model"]["model"]["definition"])
features = json.loads((FOLDER / "shop.features.json").read_text())["featureset"]["features"]
print(len(definition), "trees; the first feature as a query of the engine:")
print(json.dumps(features[0], indent=1))

# %% [markdown]
# ## What the engine does
#
# Two requests upload the feature set and the model ([how](../export/elasticsearch-ltr.md)). Then, for each
# search, the engine fetches its best documents as before, computes the features of the first hundred or so
# (`window_size`), walks each tree from the root, adds the leaves up, and sorts. That is all, and here it is:


# %%
def leaf_of(node: dict[str, Any], document: dict[str, float]) -> float:
    """The leaf that a document falls into: left if its feature is below the threshold."""
    while "leaf" not in node:
        goes_left = np.float32(document[node["split"]]) < np.float32(node["split_condition"])
        node = node["children"][0 if goes_left else 1]
    return node["leaf"]


candidates = products.filter(query_id="query 3")
by_engine = [sum(leaf_of(tree, document) for tree in definition) for document in candidates.iter_rows(named=True)]
by_student = cuolr.rank_one(distilled.student, candidates.drop("query_id"))
print("engine: ", candidates["doc_id"].to_numpy()[np.argsort(by_engine)[::-1]][:5])
print("student:", np.asarray(by_student.ids)[:5])

# %% [markdown]
# ## Serve, and write down what happens
#
# An engine's own log comes back by [UBI](../ubi.md) or [a table](../importing.md). `cuolr serve` ranks over
# HTTP and keeps a log itself. `--randomise` swaps two neighbours in some of the lists: it costs few clicks, and
# without it a log of one list for each query would not say how much of a click is the position's. The service
# is a process of its own, as in production.

# %%
command = [sys.executable, "-m", "cuolr", "serve", str(FOLDER / "STUDENT"), "--port", "0", "--k", str(SHOWN)]
command += ["--log", str(FOLDER / "SERVED"), "--randomise", "swap-neighbours:20%", "--max-loss", "20%"]
service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
address = next(found[0] for line in service.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))


def call(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Post JSON to the service."""
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(address + path, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


def as_request(query: int) -> dict[str, Any]:
    """A search: its query and the candidates with their features, as the engine has them."""
    mine = products[query * PRODUCTS : (query + 1) * PRODUCTS].drop("query_id")
    documents = [{"id": row.pop("doc_id"), "features": row} for row in mine.iter_rows(named=True)]
    return {"query": f"query {query}", "documents": documents}


requests = [as_request(query) for query in range(QUERIES)]
for _ in range(25):  # users come, 80 at a time
    answers = call("/rank", {"requests": [requests[query] for query in RNG.integers(0, QUERIES, 80)]})["results"]
    events = []
    for answer in answers:
        shown = np.array([int(document["id"][1:]) for document in answer["documents"]])
        for product in shown[clicks_on(shown)]:
            events.append({"request_id": answer["request_id"], "document": f"p{product}"})
    call("/events", {"events": events})
service.terminate()  # Ctrl-C: calls that have begun are answered, and the log is closed
service.communicate()
print(sorted(path.name for path in (FOLDER / "SERVED").glob("*.parquet")))

# %% [markdown]
# ## The log comes back
#
# `cuolr import-log --format cuolr-serve SERVED --features features.csv --out NEXT_LOG` on the command line. The
# propensity of each document, given those above it, is in the log.

# %%
served, report = cuolr.import_log_with_report(FOLDER / "SERVED", products, format="cuolr-serve")
print(report.summary())
print(f"clicks per session: {log.clicks.sum() / log.sessions:.2f} → {served.clicks.sum() / served.sessions:.2f}")

# %% [markdown]
# ## And around again
#
# The next model learns from the first log and most of the new one. The rest of it, which is later, compares the
# next model with the one that is served now. A new folder under the same name is all that `cuolr serve` needs:
# it loads the model while it runs.

# %%
earlier, later = cuolr.split_by_time(served, 0.4)
cuolr.save_click_log(log, FOLDER / "LOG")
cuolr.save_click_log(earlier, FOLDER / "NEXT_LOG")
cuolr.merge_logs([FOLDER / "LOG", FOLDER / "NEXT_LOG"], FOLDER / "BOTH")
both = cuolr.load_click_log(FOLDER / "BOTH")
following = cuolr.Ranker("dla", steps=150, batch_size=64, settings={"training.validate_every": 50}).fit(both)
decision = cuolr.assess(following, later, against=distilled.student)
print(f"the next model against the one that is served: {decision.recommendation}: {decision.reason}")
