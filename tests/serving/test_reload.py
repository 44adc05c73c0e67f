"""Models that are replaced while they are served."""

import time
from pathlib import Path

import pytest

from cuolr.serving import service as service_module
from tests.serving.small_service import COLOUR, PRICE, TestClient, documents, ids, linear_model, serving
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
