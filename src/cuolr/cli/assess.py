"""`cuolr assess`: off-policy evaluation of models on a click log, ending with ship, test or keep."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import say, show_json, show_table, show_text, stage_bars
from cuolr.errors import InputError, problems_in
from cuolr.examination.plot import check_plot
from cuolr.files import check_files
from cuolr.logs.log_folder import load_click_log
from cuolr.logs.time_window import TimeWindow
from cuolr.progress import Stages

if TYPE_CHECKING:
    from cuolr.off_policy.gain_estimate import GainByEstimator
    from cuolr.off_policy.position_discount import Discount
    from cuolr.off_policy.recommendation import OffPolicyEvaluation

# By recommendation; 2 is bad input, as for every command.
EXIT_STATUS = {"ship": 0, "test": 10, "keep": 11}


@dataclass(frozen=True)
class ComparisonFlags:
    """What is compared.

    Attributes:
        against: Folder of another model, to compare with instead of the current ranker.
        k: Length of the lists. By default that of the log's lists.
        discount: What a click or a reward at each position counts: `dcg`, which is 1 / log2(1 + position), or a weight
            for each position, such as 1,0.5,0.25. By default 1.
    """

    against: Path | None = None
    k: int | None = None
    discount: Annotated[str | None, tyro.conf.arg(metavar="dcg|WEIGHT,…")] = None

    def weights(self) -> "Discount":
        """As the library takes them."""
        if self.discount is None:
            return None
        if self.discount == "dcg":
            return "dcg"
        try:
            return tuple(float(weight) for weight in self.discount.split(","))
        except ValueError:
            expected = "expected dcg or weights such as 1,0.5,0.25"
            raise InputError(f"--discount: {expected}, found '{self.discount}'") from None


def assess(
    model: tyro.conf.Positional[Path],
    log: tyro.conf.Positional[Path],
    more_models: tuple[Path, ...] = (),
    compared: ComparisonFlags = ComparisonFlags(),
    window: TimeFlags = TimeFlags(),
    plot: Path | None = None,
    json: bool = False,
) -> int:
    """Recommend from a click log whether to ship a model, to test it, or to keep the current ranker.

    No labels are needed. Users of several click models are fitted to the log and run forward over the model's own
    lists: the gain in clicks, or in the reward of a log with rewards, over the ranker that made the log. All users that
    explain held-out sessions about as well as the best have a say; so has importance sampling, if the log has
    propensities and an effective sample size of 100 or more. Documents that the log never shows count as a worst and a
    best case.

    Use a log that the model was not trained on, such as the following week's. On its own training log a model is
    evaluated on the queries that training held out. A log that contains the training sessions among others cannot be
    recognised; the gain is then overestimated.

    Never recommends shipping if the model was trained on these clicks, or if too few documents changed position to
    separate position bias from relevance.

    Exit status (of several models, that of the best):

      0   ship: the model is better
      10  test: the model is probably better; run an A/B test
      11  keep: the log does not show that the model is better
      2   bad input, such as a missing file

    Args:
        model: Folder of a trained model.
        log: Folder of a click log with the same features.
        more_models: Folders of other models to evaluate, too.
        compared: What is compared.
        window: Sessions to use, by time, such as those after training.
        plot: Write a picture of the intervals by estimator (.png, .svg or .pdf).
        json: Print JSON instead of a table; with several models, a list.
    """
    models = (model, *more_models)
    with problems_in("--plot"):
        check_plot(plot)
    check_files([plot], overwrite=True)
    with stage_bars() as stages:
        results = list(_evaluations(models, log, compared, window.window(), stages))
    if plot is not None:
        from cuolr.off_policy.gain_plot import plot_gains

        plot_gains({str(name): result for name, result in zip(models, results, strict=True)}, plot)
        say(f"wrote {plot}")
    if json:
        found = [result.as_dict() for result in results]
        show_json(found if len(found) > 1 else found[0])
    else:
        for name, result in zip(models, results, strict=True):
            _show(result, f"{name} on {log}")
    return min(EXIT_STATUS[result.recommendation] for result in results)


def _evaluations(
    models: tuple[Path, ...], log: Path, compared: ComparisonFlags, window: TimeWindow, stages: Stages
) -> "Iterator[OffPolicyEvaluation]":
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.off_policy.assess import assess as assess_policy
    from cuolr.off_policy.users_of_log import UsersOfLog
    from cuolr.policies.model_folder import load_policy, provenance_of

    policies = [load_policy(model) for model in models]
    other = None if compared.against is None else load_policy(compared.against)
    discount = compared.weights()
    sessions = load_click_log(log, window, ids=False, stages=stages, documents=True)
    users = UsersOfLog.fit(sessions, stages=stages) if len(models) > 1 else None
    for model, policy in zip(models, policies, strict=True):
        with problems_in(f"{model} on {log}"):
            found = assess_policy(policy, sessions, compared.k, provenance_of(model), stages, other, users, discount)
        yield found


def _show(result: "OffPolicyEvaluation", title: str) -> None:
    show_table(title, ["", ""], _rows(result))
    if result.estimates:
        heads = ["estimator", "gain", "95 % interval", "worst to best case", "held-out log-likelihood", "calibration"]
        heads += ["effective sessions"] if any(e.effective_sample_size is not None for e in result.estimates) else []
        rows = [_estimator_row(estimate) for estimate in result.estimates]
        title = f"gain in {result.outcome_name} over {result.against}, relative to the logged {result.outcome_name}"
        show_table(title, heads, rows, _about_the_cases(result), left=(0,))
        doubts = [
            f"{estimate.estimator}: {'; '.join(estimate.doubts)}" for estimate in result.estimates if estimate.doubts
        ]
        if doubts:
            show_text("\n".join([*doubts, ""]))
    if result.changed and result.can_estimate:
        rows = [[found.query_id, f"{found.sessions:,}", f"{found.change:+,.1f}"] for found in result.changed]
        heads = ["query", "sessions", f"change in {result.outcome_name}"]
        show_table("queries with the largest estimated change, all their sessions together", heads, rows, left=(0,))
    show_text(f"{result.recommendation}: {result.reason}")


def _about_the_cases(result: "OffPolicyEvaluation") -> str | None:
    """What the worst and the best case of fitted users are; None if they make no difference."""
    from cuolr.off_policy.recommendation import interval_text

    users = [e for e in result.estimates if e.effective_sample_size is None and e.is_known]
    if all(interval_text(e.bounds) == interval_text(e.interval) for e in users):
        return None
    caption = (
        "Worst to best case, under fitted users: documents that the log hardly or never shows are at worst as "
        "attractive as those of the model that it hardly shows, or not at all if a query always shows the same "
        "documents; at best as the best document of the log."
    )
    other_way = "" if result.against == "production" else " Of the other model alone, it is the other way round."
    return caption + other_way


def _rows(found: "OffPolicyEvaluation") -> list[list[str]]:
    top = f"top {found.k}"
    held_out = ", sessions held out in training" if found.session_groups else ", held out in training"
    rows = [
        ["queries", f"{found.queries:,}{held_out if found.held_out else ''}"],
        ["model trained on these clicks", _yes_or_no(found.trained_on_these_queries)],
        *(
            [["sessions from the time of its training", f"{during:,}"]]
            if (during := found.sessions_during_training)
            else []
        ),
        ["position bias identifiable", _yes_or_no(found.identifiable)],
        [f"{top} never shown in the log", f"{found.never_shown:.0%}"],
        [f"{top} shown in the log, mean over sessions", f"{found.overlap:.0%}"],
    ]
    if found.logging_policy_share is not None:
        rows += [
            ["share of the score from a model of the current ranker", f"{found.logging_policy_share:.0%}"],
            [f"{top} of that model shown in the log", f"{found.logging_policy_overlap:.0%}"],
        ]
    if found.sessions_for_test is not None and found.can_estimate:
        rows.append(["sessions in each arm of an A/B test, for 80 % power", f"{found.sessions_for_test:,}"])
    if found.sessions_for_interleaving is not None and found.can_estimate:
        rows.append(["sessions of an interleaving test, for 80 % power", f"{found.sessions_for_interleaving:,}"])
    return [
        *rows,
        [
            f"estimated gain in {found.outcome_name} over {found.against}",
            f"{found.gain:+.1%}" if found.can_estimate else "unknown",
        ],
        ["95 % interval", found.interval_text],
    ]


def _estimator_row(found: "GainByEstimator") -> list[str]:
    from cuolr.off_policy.recommendation import interval_text

    size = found.effective_sample_size
    return [
        found.estimator,
        f"{found.gain:+.1%}" if found.is_known else "unknown",
        interval_text(found.interval) if found.is_known else "unknown",
        interval_text(found.bounds) if found.is_known else "unknown",
        "" if found.difference is None else "best" if found.difference == 0 else f"{found.difference:+.4f}",
        "" if found.calibration is None else f"{found.calibration:.0%}",
        *([] if size is None else [f"{size:,.0f}" if found.is_reliable else f"{size:,.0f}: too few"]),
    ]


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def recommendation_lines(found: "OffPolicyEvaluation") -> Iterator[str]:
    """The off-policy evaluation of a model on its training log, in words."""
    kind = "query" if found.queries == 1 else "queries"
    held_out = f"{kind}, with held-out sessions" if found.session_groups else f"held-out {kind}"
    on = f"{kind} that it was trained on" if found.trained_on_these_queries else held_out
    yield (
        f"on {found.queries:,} {on}: a session shows {found.overlap:.0%} of the model's top {found.k} on average; "
        f"{found.never_shown:.0%} is never shown"
    )
    if found.logging_policy_share is not None:
        yield (
            f"{found.logging_policy_share:.0%} of the score comes from a model of the current ranker, which "
            f"reproduces {found.logging_policy_overlap:.0%} of its top {found.k}"
        )
    yield f"{found.recommendation}: {found.reason}"
    if found.recommendation == "keep" and found.interval[1] > 0:
        yield "note: on a later log all queries can be used: cuolr assess MODEL LATER_LOG"
