"""The effect of bfloat16 products in training on the learned ranking."""

from benchmarks.table import Row, torch_threads
from tests.end_to_end.learning import learn

CLICK_MODEL, SEEDS = "pbm", (1, 2)
THREADS = 2


def run() -> list[Row]:
    """nDCG@10 of SAC and CQL on generated data, in both precisions."""
    with torch_threads(THREADS):
        return [row for learner in ("sac", "cql") for row in _measure(learner)]


def _measure(learner: str) -> list[Row]:
    float32, bfloat16 = (
        sum(learn(learner, seed, CLICK_MODEL, precision=precision).test for seed in SEEDS) / len(SEEDS)
        for precision in ("float32", "bfloat16")
    )
    return [
        Row(f"precision {learner}: nDCG@10 of float32", float32, "", "", True),
        Row(f"precision {learner}: nDCG@10 of bfloat16", bfloat16, "", "", True),
        Row(f"precision {learner}: nDCG@10 of bfloat16 over float32", bfloat16 / float32, "×", "", True),
    ]
