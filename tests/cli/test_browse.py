import json
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from cuolr.browsing import browse_server
from cuolr.logs.log_folder import save_click_log
from cuolr.off_policy.users_of_log import UsersOfLog
from cuolr.policies.model_folder import save_policy
from cuolr.policies.random_policy import RandomPolicy
from tests.cli.conftest import Run
from tests.small_log import small_candidates, small_log


@pytest.mark.thorough
def test_a_page_is_written_to_one_file_and_how_many_queries_it_has_is_said(
    run: Run, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    result = run("browse", *folders, "--static", out, "--queries", 4)
    assert (result.status, result.out) == (0, "")
    assert result.err.startswith(f"wrote {out}: 4 of 6 queries, ")
    assert "<title>MODEL on LOG</title>" in out.read_text()
    assert "already exists" in run("browse", *folders, "--static", out).err
    assert run("browse", *folders, "--static", out, "--overwrite").err.startswith(f"wrote {out}: 6 queries, ")


def test_titles_are_in_the_page(run: Run, folders: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "titles.csv").write_text("doc_id,title\n1,The first one\n")
    out = tmp_path / "page.html"
    assert run("browse", *folders, "--static", out, "--titles", tmp_path / "titles.csv").status == 0
    assert "The first one" in out.read_text()


def test_a_folder_that_is_not_there_is_made(run: Run, folders: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "new" / "page.html"
    assert run("browse", *folders, "--static", out).status == 0
    assert out.is_file()


def test_a_log_with_other_features_is_refused_before_any_work(
    run: Run, folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = small_log(30)
    save_click_log(replace(log, candidates=small_candidates(n_features=7)), tmp_path / "OTHER")
    monkeypatch.setattr(UsersOfLog, "fit", None)
    result = run("browse", folders[0], tmp_path / "OTHER")
    assert (result.status, result.err) == (2, "error: expected documents with 4 features, as in training, found 7\n")


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("--static", "page.txt"), "expected a name that ends in .html"),
        (("--queries", "0"), "queries: expected a whole number >= 1"),
        (("--port", "70000"), "port"),
        (("--min-sessions", "0"), "min_sessions"),
        (("--min-sessions", "1000"), "no query of the log has 1,000 sessions; lower --min-sessions"),
        (("--titles", "none.csv"), "none.csv: file not found"),
    ],
)
def test_bad_options_are_one_line(run: Run, folders: tuple[Path, Path], flags: tuple[str, ...], error: str) -> None:
    result = run("browse", *folders, *flags)
    assert (result.status, result.out) == (2, "")
    assert error in result.err
    assert len(result.err.splitlines()) == 1


def test_a_server_says_where_it_is_and_stops_with_ctrl_c(
    run: Run, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[int] = []
    start: Callable[..., ThreadingHTTPServer] = browse_server.browse_server

    def visited_once(*arguments: object) -> ThreadingHTTPServer:
        server = start(*arguments)
        serve = server.serve_forever

        def serve_until_visited(*_: object) -> None:
            def visit() -> None:
                with urllib.request.urlopen(f"http://127.0.0.1:{server.server_address[1]}/", timeout=10) as answer:
                    answers.append(answer.status)
                server.shutdown()

            visitor = threading.Thread(target=visit)
            visitor.start()
            serve(0.05)
            visitor.join()
            raise KeyboardInterrupt

        monkeypatch.setattr(server, "serve_forever", serve_until_visited)
        return server

    monkeypatch.setattr(browse_server, "browse_server", visited_once)
    result = run("browse", *folders, "--port", 0)
    assert (result.status, answers) == (130, [200])
    assert "serving http://127.0.0.1:" in result.err


def test_a_query_is_explained_in_tables_and_as_json(run: Run, folders: tuple[Path, Path]) -> None:
    found = json.loads(run("explain", *folders, "--query", "q2", "--json").out)
    assert found["query_id"] == "q2"
    assert set(found["features"]) == {"feature 1", "feature 3"}
    result = run("explain", *folders, "--query", "q2")
    assert result.status == 0
    assert f"{found['sessions']:,} sessions, estimated change in clicks" in result.out
    for document in found["documents"]:
        assert document["reason"] in result.out.replace("\n", " ")
    assert "why the model orders them so" in result.out
    assert "feature 1 +" in result.out


def test_a_model_without_scores_says_so(run: Run, folders: tuple[Path, Path], tmp_path: Path) -> None:
    save_policy(RandomPolicy(3), tmp_path / "RANDOM")
    result = run("explain", tmp_path / "RANDOM", folders[1], "--query", "q2")
    assert "does not score documents one by one" in result.out


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("--query", "q22"), "query 'q22': expected a query of the log, found none of this name (did you mean 'q2'?)"),
        (("--query", "q2", "--min-sessions", "1000"), "show it with --min-sessions 1"),
        (("--query", "q2", "--titles", "none.csv"), "none.csv: file not found"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    run: Run, folders: tuple[Path, Path], flags: tuple[str, ...], error: str
) -> None:
    result = run("explain", *folders, *flags)
    assert (result.status, result.out) == (2, "")
    assert error in result.err
    assert len(result.err.splitlines()) == 1
