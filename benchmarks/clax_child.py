"""Train CLAX's click models; run by `benchmarks.fit_clicks_clax` in an environment that has `clax-models`.

    python clax_child.py FOLDER MODEL...

FOLDER has `train.parquet` and `held_out.parquet`, with a row per session: query_doc_ids from 1, and clicks. For each
model and learning rate it writes `MODEL_RATE.parquet` with a row per epoch: CPU seconds of training up to its end,
without compilation, validation and reading; and log P(click | clicks above) of the held-out sessions.
"""

import sys
import time
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from clax import (
    CascadeModel,
    ClickChainModel,
    DependentClickModel,
    DocumentCTRModel,
    DynamicBayesianNetwork,
    GlobalCTRModel,
    PositionBasedModel,
    RankCTRModel,
    Trainer,
    UserBrowsingModel,
)
from flax import nnx
from optax import adamw

# 0.003 is the rate of CLAX's own example.
RATES = (0.003, 0.01, 0.03, 0.1)
BATCH, EPOCHS, PATIENCE = 512, 100, 3
MODELS = {
    "pbm": lambda n, k, rngs: PositionBasedModel(query_doc_pairs=n, positions=k, rngs=rngs),
    "ubm": lambda n, k, rngs: UserBrowsingModel(query_doc_pairs=n, positions=k, rngs=rngs),
    "cascade": lambda n, k, rngs: CascadeModel(query_doc_pairs=n, rngs=rngs),
    "dcm": lambda n, k, rngs: DependentClickModel(query_doc_pairs=n, positions=k, rngs=rngs),
    "ccm": lambda n, k, rngs: ClickChainModel(query_doc_pairs=n, rngs=rngs),
    "dbn": lambda n, k, rngs: DynamicBayesianNetwork(query_doc_pairs=n, rngs=rngs),
    "sdbn": lambda n, k, rngs: DynamicBayesianNetwork(query_doc_pairs=n, fix_continuation=True, rngs=rngs),
    "ctr": lambda n, k, rngs: GlobalCTRModel(rngs=rngs),
    "ctr-position": lambda n, k, rngs: RankCTRModel(positions=k, rngs=rngs),
    "ctr-document": lambda n, k, rngs: DocumentCTRModel(query_doc_pairs=n, rngs=rngs),
}


def read(file: Path) -> dict[str, np.ndarray]:
    """All sessions as one batch."""
    table = pq.read_table(file)
    documents, clicks = (np.stack(table[name].to_numpy()) for name in ("query_doc_ids", "clicks"))
    positions = np.broadcast_to(np.arange(1, documents.shape[1] + 1), documents.shape)
    return {
        "query_doc_ids": documents.astype(np.int32),
        "positions": positions.astype(np.int32),
        "clicks": clicks.astype(np.float32),
        "mask": np.ones(documents.shape, np.bool_),
    }


@nnx.jit
def predict(model, batch):
    """Log-probabilities of clicks given those above."""
    return model.predict_conditional_clicks(batch)


def train(name: str, rate: float, train_batch, held_out, pairs: int) -> pa.Table:
    """A row per epoch, until held-out sessions have not become more likely for some epochs."""
    rows, k = train_batch["clicks"].shape
    model = MODELS[name](pairs, k, nnx.Rngs(42))
    trainer, rng = Trainer(optimizer=adamw(rate)), np.random.default_rng(1)
    optimizer = nnx.ModelAndOptimizer(model, trainer.optimizer)
    step = nnx.jit(lambda model, optimizer, batch: _step(model, optimizer, batch))
    shuffled = [rng.permutation(rows)[:BATCH]]
    step(model, optimizer, {key: values[shuffled[0]] for key, values in train_batch.items()})  # compiles
    seconds, best, since, found = 0.0, np.inf, 0, []
    while len(found) < EPOCHS and since < PATIENCE:
        start = time.process_time()
        order = rng.permutation(rows)
        for first in range(0, rows - BATCH + 1, BATCH):
            chosen = order[first : first + BATCH]
            loss = step(model, optimizer, {key: values[chosen] for key, values in train_batch.items()})
        jax.block_until_ready(loss)
        seconds += time.process_time() - start
        chance = np.asarray(predict(model, held_out), np.float64)
        found.append((seconds, chance))
        miss = np.where(held_out["clicks"] > 0, chance, np.log1p(-np.minimum(np.exp(chance), 1 - 1e-7))).mean()
        since = 0 if -miss < best - 1e-6 else since + 1
        best = min(best, -miss)
    return pa.table({"seconds": [row[0] for row in found], "log_chance": [row[1].ravel() for row in found]})


def _step(model, optimizer, batch):
    loss, gradients = nnx.value_and_grad(lambda model: model.compute_loss(batch).mean())(model)
    optimizer.update(gradients)
    return loss


def main() -> None:
    """Train each named model with each learning rate."""
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    sessions, held_out = read(folder / "train.parquet"), read(folder / "held_out.parquet")
    pairs = int(max(sessions["query_doc_ids"].max(), held_out["query_doc_ids"].max()))
    for name in names:
        for rate in RATES:
            pq.write_table(train(name, rate, sessions, held_out, pairs), folder / f"{name}_{rate}.parquet")


main()
