"""`cuolr oracle`: train a reference ranker on the true labels."""

from dataclasses import dataclass
from pathlib import Path

from cuolr.cli.options import DataOptions
from cuolr.cli.terminal import progress_bar, say, show_json
from cuolr.config import Range, check_arguments
from cuolr.evaluation.evaluate import score_on
from cuolr.files import refuse_existing
from cuolr.policies.model_folder import SETTINGS_FILE, save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.random import DEFAULT_SEED
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.types import RankingDataset

ON_VALIDATION = "on vali (queries without a relevant document skipped)"


@dataclass(frozen=True)
class TrainingOptions:
    """What to train.

    Attributes:
        best: Train several settings of LambdaMART, a 256-256 network and RankSVM, and keep the best on validation
            queries. On small data the paper's settings lose to a linear ranker.
        seed: The same seed gives the same model.
        threads: Number of threads of LambdaMART.
    """

    best: bool = False
    seed: int = DEFAULT_SEED
    threads: int = 2


def oracle(
    data: Path,
    out: Path,
    training: TrainingOptions = TrainingOptions(),
    json: bool = False,
    overwrite: bool = False,
    data_options: DataOptions = DataOptions(),
) -> None:
    """Train on the true labels: LambdaMART with the paper's settings, a reference for models trained from clicks.

    Args:
        data: Folder of a labelled data set with train and vali splits.
        out: Folder of the model.
        training: What to train.
        json: Print JSON instead of messages.
        overwrite: Replace an existing model.
        data_options: How to read the data set.
    """
    refuse_existing(out, overwrite, ours=SETTINGS_FILE)
    seed, threads = training.seed, training.threads
    check_arguments(**{"--seed": (seed, Range(0)), "--threads": (threads, Range(1))})
    splits = data_options.load(data)
    train, validation = splits["train"], splits["vali"]
    provenance = {"data": str(data), "fold": data_options.fold_of(data), "seed": seed}
    if training.best:
        policy, chosen, tried = _fit_best(train, validation, training)
        described = {"oracle": "best", "chosen": chosen, "tried": tried, **provenance}
    else:
        settings = LambdaMartSettings(seed=seed, threads=threads)
        with progress_bar("trees", settings.trees) as progress:
            policy = fit_lambdamart(train, validation, settings, progress)
        chosen, tried = "lambdamart", {"lambdamart": score_on(validation)(policy)}
        described = {"oracle": "lambdamart", **provenance}
    save_policy(policy, out, described)
    if json:
        show_json({"out": str(out), "chosen": chosen, "measure": "ndcg@10", "split": "vali", "scores": tried})
    else:
        say(f"wrote {out}: {chosen}, ndcg@10 {tried[chosen]:.4f} {ON_VALIDATION}")


def _fit_best(
    train: RankingDataset, validation: RankingDataset, training: TrainingOptions
) -> tuple[RankingPolicy, str, dict[str, float]]:
    """The best of several rankers, its name, and the score of each by its name."""
    # It needs torch, which takes a second to load.
    from cuolr.supervised.oracle_best import RANKERS, fit_best

    with progress_bar("rankers", RANKERS) as progress:

        def tell(name: str, score: float) -> None:
            say(f"{name}: ndcg@10 {score:.4f}")
            progress(1)

        best = fit_best(train, validation, training.seed, training.threads, tell)
    return best.policy, best.name, dict(best.validation)
