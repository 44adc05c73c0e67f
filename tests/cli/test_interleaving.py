"""`cuolr interleaving` on the journal of a service."""

import json
import re
from pathlib import Path

from tests.cli.conftest import Run


def journal(folder: Path, clicks: list[str | None]) -> Path:
    """A log of lists with a document of each of two models, of which at most one was clicked."""
    folder.mkdir()
    lines: list[dict[str, object]] = []
    for number, clicked in enumerate(clicks):
        of_request = {"request_id": f"r{number}", "time": 1.7e9 + number}
        shown = {
            "query": "q",
            "model": "A",
            "documents": ["of A", "of B"],
            "team": ["A", "B"],
            "scores": [0, 0],
            "propensity": [1, 1],
        }
        lines.append({"kind": "list", **of_request, **shown})
        if clicked is not None:
            lines.append({"kind": "event", **of_request, "document": f"of {clicked}", "event": "click", "value": 1.0})
    (folder / "journal-000001.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_the_table_has_wins_ties_and_the_preference(run: Run, tmp_path: Path) -> None:
    log = journal(tmp_path / "LOG", ["B"] * 9 + ["A"] + [None] * 2)
    result = run("interleaving", log)
    assert result.status == 0, result.err
    cells = [re.split(r"\s{2,}", line.strip()) for line in result.out.splitlines()]
    rows = dict(row for row in cells if len(row) == 2)
    assert rows["sessions"] == "12"
    assert rows["tied"] == "2"
    assert rows["share won by B, of those decided"].startswith(f"{9 / 10:.1%} (")
    # Two-sided: 2 · (1 + 10) of 2¹⁰ outcomes are as extreme as one win in ten.
    assert rows["p-value of the sign test"] == f"{2 * 11 / 1024:.3g}"
    assert rows["clicks for B minus A, per session"].startswith(f"{(9 - 1) / 12:+.4f} (")
    assert result.out.splitlines()[-1] == "B is preferred"
    (found,) = json.loads(run("interleaving", log, "--json").out)
    assert (found["sessions"], found["ties"], found["preferred"]) == (12, 2, "B")


def test_without_clicks_there_is_no_share_to_tell(run: Run, tmp_path: Path) -> None:
    result = run("interleaving", journal(tmp_path / "LOG", [None]))
    assert result.out.splitlines()[-1] == "no significant preference"
    assert "share won" not in result.out
    assert "per session" not in result.out
