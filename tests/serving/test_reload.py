"""Models that are replaced while they are served."""

import contextlib
import http.client
import itertools
import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cuolr.errors import InputError
from cuolr.policies.model_folder import load_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.serving import served_models
from cuolr.serving import service as service_module
from cuolr.serving.served_models import ServedModels
from tests.serving.small_service import COLOUR, PRICE, TestClient, documents, ids, linear_model, serving
from tests.serving.test_process import process
from tests.serving.test_rank import metrics


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "WATCH_SECONDS", 0.02)


def reloads(client: TestClient, outcome: str, times: int = 1) -> None:
    name = f'cuolr_reloads_total{{name="m",outcome="{outcome}"}}'
    for _ in range(500):
        if metrics(client).get(name) == times:
            return
        time.sleep(0.01)
    raise AssertionError(f"no reload was {outcome} in 5 seconds")


def test_a_new_model_is_served_without_a_failed_request(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    call = {"documents": documents(1, 2)}
    with serving(model) as client:
        before = client.post("/rank", json=call).json()
        assert ids(before) == ["b", "a"]
        linear_model(model, [-1.0], PRICE)
        for _ in range(300):
            answer = client.post("/rank", json=call)
            assert answer.status_code == 200
            if (after := answer.json())["version"] != before["version"]:
                break
        assert ids(after) == ["a", "b"]
        reloads(client, "done")
        versions = [name for name in metrics(client) if name.startswith("cuolr_model{")]
    assert versions == [f'cuolr_model{{name="m",version="{after["version"]}"}}']


def test_a_damaged_model_is_not_served_and_the_old_one_stays(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    with serving(model) as client:
        before = client.get("/model").json()
        text = (model / "model.json").read_text()
        (model / "model.json").write_text(text.replace('"normalising"', '"normalizing"'))
        reloads(client, "failed")
        assert client.get("/model").json() == before
        assert ids(client.post("/rank", json={"documents": documents(1, 2)}).json()) == ["b", "a"]
        linear_model(model, [-2.0], PRICE)
        reloads(client, "done")


def test_a_model_with_other_features_is_not_served(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    with serving(model) as client:
        linear_model(model, [1.0, 1.0, 1.0], PRICE, COLOUR)
        reloads(client, "failed")
        assert client.post("/rank", json={"documents": documents(1)}).status_code == 200


def test_a_copy_that_takes_its_time_is_served_once_it_is_whole(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    other = linear_model(tmp_path / "other", [-1.0], PRICE)
    with serving(model) as client:
        (arrays,) = other.glob("*.safetensors")
        shutil.copy(other / "model.json", model)
        reloads(client, "failed")
        assert ids(client.post("/rank", json={"documents": documents(1, 2)}).json()) == ["b", "a"]
        shutil.copy(arrays, model)
        reloads(client, "done")
        assert ids(client.post("/rank", json={"documents": documents(1, 2)}).json()) == ["a", "b"]


def test_a_folder_that_was_only_touched_or_has_no_model_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    served = ServedModels.load([model])
    before = served.get()
    os.utime(model / "model.json", (0, 0))
    assert served.reload() == []
    (model / "model.json").unlink()
    assert served.reload() == []
    assert served.get() is before


def test_a_model_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load_and_replace(folder: Path) -> RankingPolicy:
        policy = load_policy(folder)
        linear_model(folder, [-1.0], PRICE)
        return policy

    model = linear_model(tmp_path / "m", [1.0], PRICE)
    monkeypatch.setattr(served_models, "load_policy", load_and_replace)
    with pytest.raises(InputError, match="m: changed while it was read; try again"):
        ServedModels.load([model])


class Caller(threading.Thread):
    """Sends calls to a service, one after the other over one connection, until it is told to stop."""

    def __init__(self, address: str, stop: threading.Event) -> None:
        super().__init__()
        self._address, self._ended = address.removeprefix("http://"), stop
        self.answers: list[dict[str, Any]] = []
        self.problems: list[str] = []

    def run(self) -> None:
        body = json.dumps({"documents": documents(1, 2)})
        with contextlib.closing(http.client.HTTPConnection(self._address, timeout=30)) as connection:
            while not self._ended.is_set():
                try:
                    connection.request("POST", "/rank", body, {"Content-Type": "application/json"})
                    answer = connection.getresponse()
                    content = answer.read().decode()
                except (OSError, http.client.HTTPException) as error:
                    self.problems.append(repr(error))
                    return
                if answer.status == 200:
                    self.answers.append(json.loads(content))
                else:
                    self.problems.append(f"{answer.status} {content}")

    @property
    def versions(self) -> list[str]:
        """In the order in which they answered, each once in a row."""
        return [version for version, _ in itertools.groupby(answer["version"] for answer in self.answers)]


@pytest.mark.thorough
def test_concurrent_calls_never_fail_while_models_are_replaced_and_broken(tmp_path: Path) -> None:
    """A real service; its model is replaced three times, broken in two ways in between."""
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    stop = threading.Event()
    with process(model) as (_, address):
        callers = [Caller(address, stop) for _ in range(4)]
        for caller in callers:
            caller.start()

        def now_served() -> str:
            return max(callers, key=lambda caller: len(caller.answers)).answers[-1]["version"]  # type: ignore[no-any-return]

        def wait_for_another(version: str) -> str:
            end = time.monotonic() + 20
            while time.monotonic() < end:
                if (found := now_served()) != version:
                    return found
                time.sleep(0.05)
            raise AssertionError(f"still {version} after 20 seconds")

        while not all(caller.answers for caller in callers):
            time.sleep(0.05)
        served = [now_served()]
        for number, weight in enumerate((-1.0, 2.0, -3.0)):
            linear_model(model, [weight], PRICE)
            served.append(wait_for_another(served[-1]))
            if number == 0:
                (model / "model.json").write_bytes(b"{")
            elif number == 1:
                shutil.rmtree(model)
                model.mkdir()
                (model / "model.json").write_text("[" * 100_000)
            if number < 2:
                time.sleep(2.5)  # it has seen the broken folder
                assert now_served() == served[-1]
        stop.set()
        for caller in callers:
            caller.join()
    assert [caller.problems for caller in callers] == [[]] * 4
    # The first and the third model prefer the dearest document, the others the cheapest.
    expected = dict(zip(served, (["b", "a"], ["a", "b"], ["b", "a"], ["a", "b"]), strict=True))
    for caller in callers:
        assert caller.versions == served
        assert all(ids(answer) == expected[answer["version"]] for answer in caller.answers)
        assert len(caller.answers) > 50
