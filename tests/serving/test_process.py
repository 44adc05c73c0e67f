"""The service as a process: started by the command, called with curl as its page says, killed, stopped, under load."""

import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.serve_load import put_load
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.served_log import numbered_files
from cuolr.serving.journal import Journal
from cuolr.serving.service import ListSettings
from tests.cli.conftest import Run as Run
from tests.cli.conftest import run as run
from tests.serving.small_service import COLOUR, PRICE, STOCK, documents, linear_model, serving

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "serve.md").read_text()
BLOCKS = re.findall(r"```sh\n(curl .*?)```", PAGE, re.DOTALL)
CURL = [command for block in BLOCKS for command in re.split(r"\n(?=curl )", block)]


@contextmanager
def process(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service at any free port, and its address."""
    command = [sys.executable, "-m", "cuolr", "serve", "--port", "0", *map(str, arguments)]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert started.stderr is not None
        first = started.stderr.readline()
        match = re.search(r"http://\S+:\d+", first)
        assert match is not None, first + started.stderr.read()
        yield started, match[0]
    finally:
        started.kill()
        started.communicate()


def call(url: str, body: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.thorough
def test_killed_it_loses_at_most_the_last_second_and_no_part(tmp_path: Path) -> None:
    model, log = linear_model(tmp_path / "m", [1.0], PRICE), tmp_path / "LOG"
    answered: list[tuple[float, str]] = []
    with process(model, "--log", log) as (service, address):
        end = time.monotonic() + 2.5
        while time.monotonic() < end or len(answered) < 60:  # a busy machine answers few a second
            answer = call(f"{address}/rank", {"query": "q", "documents": documents(1, 2)})
            answered.append((time.monotonic(), answer["request_id"]))
        service.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        service.wait()
    (journal,) = numbered_files(log).values()
    journal.write_bytes(journal.read_bytes() + b'{"kind": "list", "docum')  # as if it had died within a line
    with process(model, "--log", log) as (service, address):
        last = call(f"{address}/rank", {"query": "q", "documents": documents(1, 2)})["request_id"]
        service.send_signal(signal.SIGTERM)
        service.wait(timeout=20)
    assert {file.suffix for file in numbered_files(log).values()} == {".parquet"}
    kept = set(import_log_with_report(log, format="cuolr-serve")[0].session_id.tolist())  # type: ignore[union-attr]
    older = {name for moment, name in answered if moment < killed - 1}
    assert len(older) > 20
    assert older <= kept
    assert kept <= {name for _, name in answered} | {last}
    assert last in kept


@pytest.mark.thorough
def test_told_to_stop_it_answers_what_has_begun_and_writes_the_log(tmp_path: Path) -> None:
    model, log = linear_model(tmp_path / "m", [1.0], PRICE), tmp_path / "LOG"
    with process(model, "--log", log) as (service, address):
        for _ in range(3):
            call(f"{address}/rank", {"documents": documents(1)})
        service.send_signal(signal.SIGTERM)
        said = service.communicate(timeout=20)[1]
    assert service.returncode == 143
    assert "Traceback" not in said
    assert len(import_log_with_report(log, format="cuolr-serve")[0]) == 3


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_calls_of_the_page_work(tmp_path: Path) -> None:
    numbered = linear_model(tmp_path / "numbered", [1.0] * 10)
    named = linear_model(tmp_path / "named", [1.0, 10.0, 100.0, 200.0], PRICE, STOCK, COLOUR)
    assert len(CURL) == 7
    request_id, answers = "", []
    for model in (numbered, named):
        with process(model, "--log", tmp_path / model.name / "LOG") as (_, address):
            call(f"{address}/rank", {"documents": [{"id": "x", "features": [0] * (10 if model == numbered else 3)}]})
            for command in CURL[:1] if model == numbered else CURL[1:]:
                command = command.replace("http://127.0.0.1:8000", address).replace("REQUEST_ID", request_id)
                done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
                answers.append(done.stdout)
                found = re.search(r'"request_id":"([^"]+)"', done.stdout)
                request_id = found[1] if found else request_id
    first, second, click, events, health, models, metrics = answers
    assert [d["id"] for d in json.loads(first)["documents"]] == ["d1", "d2"]
    assert [d["id"] for d in json.loads(second)["documents"]] == ["d1", "d2"]
    assert (json.loads(click), json.loads(events)) == ({"accepted": 1}, {"accepted": 2})
    assert json.loads(health) == {"status": "ok"}
    assert json.loads(models)["models"][0]["name"] == "named"
    assert "cuolr_events_total 3.0" in metrics


def test_bad_arguments_are_one_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUOLR_TOKEN", raising=False)
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    for arguments, says in (
        ([], "MODEL: expected the folder of a model, found none"),
        ([tmp_path / "nothing"], "file not found; expected a saved model"),
        ([model, "--host", "0.0.0.0"], "needs a bearer token"),
        ([model, "--port", "70000"], "--port: expected 0 to 65535, found 70000"),
        ([model, "--k", "0"], "--k: expected a whole number >= 1"),
        ([model, "--time-limit", "0"], "time_limit"),
        ([model, "--randomise", "swap-neighbours:90%"], "--randomise: swap-neighbours: expected a share"),
        ([model, "--randomise", "swap-neighbours:20%"], "above --max-loss 5.0%"),
        ([model, "--randomise", "plackett-luce:1"], "--safety-log LOG"),
        ([model, "--safety-log", model], "--safety-log: only possible with --randomise"),
        (
            [model, "--interleave", model, "--log", tmp_path / "L", "--randomise", "swap-neighbours:5%"],
            "--interleave: not possible with --randomise",
        ),
        ([model, "--interleave", model], "--interleave: needs --log"),
        ([model, "--interleave", model, "--log", tmp_path / "L"], "expected folders of different names"),
    ):
        result = run("serve", *arguments)
        assert (result.status, result.out, result.err.count("\n")) == (2, "", 1), result.err
        assert says in result.err


def test_the_preference_of_users_is_found(run: Run, tmp_path: Path) -> None:
    dear, cheap = linear_model(tmp_path / "dear", [1.0], PRICE), linear_model(tmp_path / "cheap", [-1.0], PRICE)
    settings = ListSettings(k=4, interleave_with="cheap", seed=1)
    with serving(dear, cheap, journal=Journal(tmp_path / "LOG"), lists=settings) as client:
        for _ in range(40):
            answer = client.post("/rank", json={"documents": documents(1, 2, 3, 4)}).json()
            # Users click on the cheapest document, which only the second model puts first.
            client.post("/events", json={"request_id": answer["request_id"], "document": "a"})
    result = run("interleaving", tmp_path / "LOG", "--json")
    assert result.status == 0
    (found,) = json.loads(result.out)
    assert (found["first"], found["second"], found["sessions"], found["with_clicks"]) == ("dear", "cheap", 40, 40)
    assert found["second_wins"] == 40
    assert found["preferred"] == "cheap"
    assert found["p_value"] == pytest.approx(2 * 0.5**40)
    table = run("interleaving", tmp_path / "LOG").out
    assert table.splitlines()[-1] == "cheap is preferred"
    assert "100.0%" in table
    assert run("interleaving", tmp_path / "nothing").err.count("\n") == 1


def test_without_the_extra_it_says_how_to_install_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("serve", "MODEL")
    assert (result.status, result.err) == (
        2,
        "error: the service needs FastAPI and uvicorn; install them with: pip install 'cuolr[serve]'\n",
    )


@pytest.mark.thorough
def test_every_call_is_answered_and_written_down(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0, -1.0, 0.5])
    load = asyncio.run(put_load(model, tmp_path / "LOG", rate=50, seconds=2, features=3))
    assert (len(load.latencies), load.errors) == (100, [])
    assert len(import_log_with_report(tmp_path / "LOG", format="cuolr-serve")[0]) == 100


@pytest.mark.thorough
def test_refused_calls_are_errors(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0])
    load = asyncio.run(put_load(model, tmp_path / "LOG", rate=50, seconds=0.2, features=3))
    assert [error[:12] for error in load.errors] == ["HTTP/1.1 422"] * 10
