"""`cuolr assess`: off-policy evaluation of a model on a click log, and a recommendation."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import show_json, show_table, show_text, stage_bars
from cuolr.logs.log_folder import load_click_log
from cuolr.logs.time_window import TimeWindow
from cuolr.progress import Stages

if TYPE_CHECKING:
    from cuolr.off_policy.recommendation import OffPolicyEvaluation

# By recommendation; 2 is bad input, as for every command.
EXIT_STATUS = {"ship": 0, "test": 10, "keep": 11}


def assess(
    model: tyro.conf.Positional[Path],
    log: tyro.conf.Positional[Path],
    k: int | None = None,
    window: TimeFlags = TimeFlags(),
    json: bool = False,
) -> int:
    """Recommend from a click log whether to ship a model, to test it, or to keep the current ranker.

    No labels are needed. The gain in clicks, or in the reward of a log with rewards, over the ranker that made the log
    is estimated by re-ordering each logged list with the model, corrected for position bias. A log says nothing about
    documents that it never shows; their share of the model's top k is reported.

    Use a log that the model was not trained on, such as the following week's. On its own training log a model is
    evaluated on the queries that training held out. A log that contains the training sessions among others cannot be
    recognised; the gain is then overestimated.

    Never recommends shipping if the model was trained on these clicks, or if too few documents changed position to
    separate position bias from relevance.

    Exit status:

      0   ship: the model is better
      10  test: the model is probably better; run an A/B test
      11  keep: the log does not show that the model is better
      2   bad input, such as a missing file

    Args:
        model: Folder of a trained model.
        log: Folder of a click log with the same features.
        k: Length of the lists that are compared with the log. By default 10, or the length of the log's lists.
        window: Sessions to use, by time, such as those after training.
        json: Print JSON instead of a table.
    """
    with stage_bars() as stages:
        result = _off_policy_evaluation(model, log, k, window.window(), stages)
    if json:
        show_json(result.as_dict())
    else:
        show_table(f"{model} on {log}", ["", ""], _rows(result))
        show_text(f"{result.recommendation}: {result.reason}")
    return EXIT_STATUS[result.recommendation]


def _off_policy_evaluation(
    model: Path, log: Path, k: int | None, window: TimeWindow, stages: Stages
) -> "OffPolicyEvaluation":
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.off_policy.assess import assess as assess_policy
    from cuolr.policies.store import load_policy, provenance_of

    sessions = load_click_log(log, window, ids=False, stages=stages)
    return assess_policy(load_policy(model), sessions, k, provenance_of(model), stages)


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
    return [
        *rows,
        [f"estimated gain in {found.outcome} on shown documents", f"{found.gain:+.1%}"],
        ["95 % interval", found.interval_text],
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
