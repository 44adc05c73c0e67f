"""`cuolr oracle`: a ranker trained on the true labels, to measure others against."""

from pathlib import Path

from cuolr.cli.data_options import DataOptions
from cuolr.cli.terminal import say
from cuolr.errors import check_at_least
from cuolr.evaluation.evaluate import score_on
from cuolr.files import refuse_existing
from cuolr.policies.store import SETTINGS_FILE, save_policy
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart

ON_VALIDATION = "on vali, queries without a relevant document skipped"


def oracle(
    data: Path,
    out: Path,
    best: bool = False,
    seed: int = 0,
    threads: int = 2,
    data_options: DataOptions = DataOptions(),
    overwrite: bool = False,
) -> None:
    """Train on the true labels: LambdaMART with the paper's settings, the upper bound for rankers learned from clicks.

    Args:
        data: Folder of a labelled data set with train and vali splits.
        out: Folder of the model.
        best: Not LambdaMART as in the paper, but the best on validation of several settings of it, a 256-256 network
            and RankSVM. On small data the paper's settings lose to a linear ranker.
        seed: The same seed gives the same model.
        threads: How many to use.
        data_options: How to read the data set.
        overwrite: Replace the model if it is there.
    """
    # It needs torch, which takes a second to load; no other command should wait for it.
    from cuolr.supervised.oracle_best import fit_best

    refuse_existing(out, overwrite, ours=SETTINGS_FILE)
    check_at_least("--seed", seed, 0)
    check_at_least("--threads", threads, 1)
    splits = data_options.load(data)
    train, validation = splits["train"], splits["vali"]
    provenance = {"data": str(data), "fold": data_options.fold_of(data), "seed": seed}
    if best:
        found = fit_best(train, validation, seed, threads, lambda name, score: say(f"{name}: ndcg@10 {score:.4f}"))
        save_policy(
            found.policy, out, {"oracle": "best", "chosen": found.name, "tried": found.validation, **provenance}
        )
        say(f"wrote {out}: {found.name}, ndcg@10 {found.validation[found.name]:.4f} {ON_VALIDATION}")
        return
    policy = fit_lambdamart(train, validation, LambdaMartSettings(seed=seed, threads=threads))
    save_policy(policy, out, {"oracle": "lambdamart", **provenance})
    say(f"wrote {out}: lambdamart, ndcg@10 {score_on(validation)(policy):.4f} {ON_VALIDATION}")
