"""`cuolr assess`: is a model ready for users? What a click log says of it, without labels."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from cuolr.cli.terminal import say, show_json, show_table, show_text
from cuolr.files import atomic_file
from cuolr.logs.log_folder import load_click_log

if TYPE_CHECKING:
    from cuolr.off_policy.assess import Readiness


def assess(
    model: tyro.conf.Positional[Path],
    log: tyro.conf.Positional[Path],
    k: int | None = None,
    json: bool = False,
) -> None:
    """Say whether to ship a model, to test it on some users, or to keep the ranking that made the log.

    No labels are needed. How many clicks the model would gain is told from the logged lists, their documents in its
    order instead of the logged one; of documents that were never shown the log says nothing, but how many these are. It
    is best asked on a log that the model did not learn from, such as the week after: on the log that it learned from,
    only the queries that were held out in training are looked at, and without such it is never said to ship. Sessions
    that it learned from must not be among those of a longer log: that cannot be seen, and flatters it. Nor is it said
    where too few clicks are on documents that moved, so that the log cannot tell how people look from what they like.

    Args:
        model: Folder of a trained model.
        log: Folder of a click log of the same features.
        k: How many of the model's documents are looked for in the log; by default 10, or as many as its lists have.
        json: Print JSON instead of a table.
    """
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.off_policy.assess import assess as assess_policy
    from cuolr.off_policy.assess import assess_on_own_log, digest_of_clicks
    from cuolr.policies.store import load_policy, provenance_of

    policy, provenance, sessions = load_policy(model), provenance_of(model), load_click_log(log)
    own = provenance.get("log", {}).get("clicks_sha256") == digest_of_clicks(sessions)
    found = (
        assess_on_own_log(policy, sessions, provenance["settings"], k) if own else assess_policy(policy, sessions, k)
    )
    if json:
        show_json(found.as_dict())
        return
    share, imitated = ("–" if value is None else f"{value:.0%}" for value in (found.logged_order, found.imitated))
    rows = [
        ["queries", f"{found.queries:,}{', held out in training' if own and not found.learned else ''}"],
        [f"of the top {found.k} never shown in the log", f"{found.never_shown:.0%}"],
        [f"of the top {found.k} shown, on average over sessions", f"{found.overlap:.0%}"],
        ["of the score, the imitation of the logged order", share],
        [f"of that imitation's top {found.k} shown", imitated],
        ["more clicks on shown documents", f"{found.gain:+.1%}"],
        ["95 % interval", found.interval_text],
        ["moved documents tell how people look", "yes" if found.positions_told else "no"],
    ]
    show_table(f"{model} against {log}", ["", ""], rows)
    show_text(f"{found.verdict}: {found.reason}")


def tell_readiness(found: "Readiness", file: Path) -> None:
    """Say, and write down, what the log that a model learned from says of it."""
    with atomic_file(file) as unfinished:
        unfinished.write_text(json_format.dumps(found.as_dict(), indent=2) + "\n", encoding="utf-8")
    share = ""
    if found.logged_order is not None:
        share = (
            f"; {found.logged_order:.0%} of its score is an imitation of the logged order, {found.imitated:.0%} of "
            f"whose own top {found.k} stand there"
        )
    kind = "query" if found.queries == 1 else "queries"
    on = f"{kind}, all of which it has learned from" if found.learned else f"held-out {kind}"
    say(
        f"on {found.queries:,} {on}: of its top {found.k}, {found.overlap:.0%} stand in the logged lists and "
        f"{found.never_shown:.0%} were never shown{share}"
    )
    say(f"{found.verdict}: {found.reason}")
    if found.verdict == "keep" and found.interval[1] > 0:
        say("note: a log of later days tells more, on all queries: `cuolr assess`")
