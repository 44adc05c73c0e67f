"""`cuolr distil`: one fast model that ranks as another does."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from cuolr.cli.options import DataOptions, as_model_takes
from cuolr.cli.terminal import say, show_json, show_table, stage_bars
from cuolr.config import Range, check_arguments
from cuolr.evaluation.evaluate import score_on
from cuolr.files import refuse_existing
from cuolr.logs.log_folder import load_click_log
from cuolr.policies.model_folder import SETTINGS_FILE, load_policy, save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.random import DEFAULT_SEED

if TYPE_CHECKING:
    from cuolr.off_policy.recommendation import OffPolicyEvaluation

MEASURE = "ndcg@10"


@dataclass(frozen=True)
class LabelOptions:
    """Labelled queries to compare both models on."""

    labels: Path | None = None
    """Folder of a labelled data set, or one LETOR file. No labels are used in training."""
    split: Literal["train", "vali", "test"] = "test"
    """Split of the data set."""
    data_options: DataOptions = field(default_factory=DataOptions)

    def scores(self, models: list[RankingPolicy]) -> list[float] | None:
        """The measure of each model; None without labels."""
        if self.labels is None:
            return None
        labelled = self.data_options.load_labelled(self.labels, self.split, [MEASURE])
        queries = as_model_takes(labelled, models[0].n_features, self.labels)
        return [score_on(queries, MEASURE)(model) for model in models]


def distil(
    model: tyro.conf.Positional[Path],
    data: Path,
    out: Path,
    to: Literal["trees", "linear", "network"] = "trees",
    labelled: LabelOptions = LabelOptions(),
    seed: int = DEFAULT_SEED,
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Train a student: one fast ranker that ranks as a slower model, its teacher, does.

    The student learns from the teacher's scores of the log's candidates, not from clicks. Prints what is lost: the
    share of the teacher's top 10 that is in the student's, on queries that the student did not learn from; the gain of
    both over the current ranker, estimated from the log as `cuolr assess` does; and with --labels their nDCG.

    Args:
        model: Folder of a trained model, the teacher.
        data: Folder of a click log whose candidates the student learns from, such as the training log.
        out: Folder of the student.
        to: What the student is. Trees and linear models rank without torch.
        labelled: Labelled queries to compare both models on.
        seed: The same seed gives the same student.
        json: Print JSON instead of a table.
        overwrite: Replace an existing model.
    """
    refuse_existing(out, overwrite, ours=SETTINGS_FILE)
    check_arguments(**{"--seed": (seed, Range(0))})
    # These need torch, which takes a second to load.
    from cuolr.distillation.distil import distil as distil_policy
    from cuolr.distillation.student import StudentConfig, is_fast
    from cuolr.off_policy.assess import assess
    from cuolr.off_policy.users_of_log import UsersOfLog

    teacher = load_policy(model)
    if is_fast(teacher):
        say(f"note: {model} is a single fast model already")
    with stage_bars() as stages:
        log = load_click_log(data, ids=False, stages=stages)
        found = distil_policy(teacher, log.candidates, to, StudentConfig(seed=seed), stages)
        provenance, users = found.provenance(teacher.provenance), UsersOfLog.fit(log, stages=stages)
        models: list[RankingPolicy] = [teacher, found.student]
        gains = [assess(policy, log, None, provenance, stages, users=users) for policy in models]
    measured = labelled.scores(models)
    save_policy(found.student, out, provenance)
    if json:
        facts = {
            "out": str(out),
            **found.described(),
            "seconds": found.seconds,
            "gain": _by_model([_gain(gain) for gain in gains]),
        }
        show_json(facts | ({} if measured is None else {MEASURE: _by_model(measured)}))
        return
    rows = [["top 10 of the teacher", "100.0%", f"{found.agreement:.1%}"]]
    rows.append([f"gain in {gains[0].outcome_name} over {gains[0].against}", *map(_gain_text, gains)])
    if measured is not None:
        rows.append([f"{MEASURE} on {labelled.labels}", *(f"{value:.4f}" for value in measured)])
    caption = f"Agreement on {found.held_out:,} queries that the student did not learn from."
    show_table(f"{model} and its student of {to}", ["", "teacher", "student"], rows, caption)
    say(f"wrote {out}: learned from {found.queries:,} queries in {found.seconds:.1f} s of processor time")


def _by_model(values: list[Any]) -> dict[str, Any]:
    return dict(zip(("teacher", "student"), values, strict=True))


def _gain(found: "OffPolicyEvaluation") -> dict[str, Any]:
    return {name: found.as_dict()[name] for name in ("gain", "interval", "recommendation")}


def _gain_text(found: "OffPolicyEvaluation") -> str:
    low, high = found.interval
    return f"{found.gain:+.1%} [{low:+.1%}, {high:+.1%}]"
