"""`cuolr assess`: is a model ready for users? What a click log says of it, without labels."""

from pathlib import Path

import tyro

from cuolr.data.clicklog import load_click_log
from cuolr.terminal import say, show_json, show_table


def assess(
    model: tyro.conf.Positional[Path],
    log: tyro.conf.Positional[Path],
    k: int = 10,
    json: bool = False,
) -> None:
    """Say whether to ship a model, to test it on some users, or to keep the ranking that made the log.

    No labels are needed. How many clicks the model would gain is told from documents that were shown, in its order
    instead of the logged one; of documents that were never shown the log says nothing, but how many these are. It is
    best asked on a log that the model did not learn from, such as the week after.

    Args:
        model: Folder of a trained model.
        log: Folder of a click log of the same features.
        k: Length of the lists that are compared.
        json: Print JSON instead of a table.
    """
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.policies.store import load_policy
    from cuolr.readiness import assess as assess_policy

    found = assess_policy(load_policy(model), load_click_log(log), k)
    if json:
        show_json(found.as_dict())
        return
    share = "–" if found.logged_order is None else f"{found.logged_order:.0%}"
    rows = [
        ["queries", f"{found.queries:,}"],
        [f"of the top {k} never shown in the log", f"{found.never_shown:.0%}"],
        [f"of the top {k} shown, on average over sessions", f"{found.overlap:.0%}"],
        ["of the score, the logged order", share],
        ["more clicks on shown documents", f"{found.gain:+.1%}"],
        ["95 % interval", f"{found.interval[0]:+.1%} to {found.interval[1]:+.1%}"],
    ]
    show_table(f"{model} against {log}", ["", ""], rows)
    say(f"{found.verdict}: {found.reason}")
