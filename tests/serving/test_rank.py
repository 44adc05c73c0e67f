"""POST /rank: lists, features of every kind, several models, batches."""

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.policies.browsing_users import LastClickUsers
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.planned_policy import PlannedPolicy
from cuolr.policies.policy import ScoringPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.serving.refusals import Limits
from cuolr.types import Candidates
from tests.serving.small_service import COLOUR, PRICE, STOCK, TestClient, documents, ids, linear_model, serving


def test_documents_are_ranked_by_score_with_ties_in_their_order(tmp_path: Path) -> None:
    with serving(linear_model(tmp_path / "cheap", [-1.0], PRICE)) as client:
        answer = client.post("/rank", json={"query": "shoes", "documents": documents(3, 1, 2, 1)})
    assert answer.status_code == 200
    found = answer.json()
    assert (found["query"], found["model"], found["request_id"]) == ("shoes", "cheap", None)
    assert [(d["id"], d["position"], d["score"], d["propensity"]) for d in found["documents"]] == [
        ("b", 1, -1, 1),
        ("d", 2, -1, 1),
        ("c", 3, -2, 1),
        ("a", 4, -3, 1),
    ]


def test_k_cuts_the_list_and_a_whole_number_can_be_an_id(tmp_path: Path) -> None:
    with serving(linear_model(tmp_path / "m", [1.0], PRICE)) as client:
        call = {"documents": [{"id": n, "features": {"price": n}} for n in range(20)]}
        assert ids(client.post("/rank", json=call).json()) == [str(n) for n in range(19, 9, -1)]
        assert ids(client.post("/rank", json={**call, "k": 2}).json()) == ["19", "18"]
        assert len(ids(client.post("/rank", json={**call, "k": 10**6}).json())) == 20


def test_booleans_categories_and_missing_values_go_by_the_recipe_of_the_model(tmp_path: Path) -> None:
    # score = price + 10·in_stock + 100·(colour=blue) + 200·(colour=red)
    model = linear_model(tmp_path / "m", [1.0, 10.0, 100.0, 200.0], PRICE, STOCK, COLOUR)
    rows = {
        "red": {"price": 1, "in_stock": True, "colour": "red"},
        "as-text": {"price": "2", "in_stock": "true", "colour": "blue"},
        "unknown-level": {"price": 3.5, "in_stock": False, "colour": "green"},
        "missing": {"price": None, "in_stock": None, "colour": None},
    }
    with serving(model) as client:
        call = {"documents": [{"id": name, "features": features} for name, features in rows.items()]}
        answer = client.post("/rank", json=call).json()
    assert {d["id"]: d["score"] for d in answer["documents"]} == {
        "red": 211,
        "as-text": 112,
        "unknown-level": 3.5,
        "missing": 0,
    }


def test_a_model_without_names_takes_a_list_or_numbers_as_in_letor(tmp_path: Path) -> None:
    with serving(linear_model(tmp_path / "m", [1.0, 2.0, 4.0])) as client:
        call = {"documents": [{"id": "list", "features": [1, 1, 0]}, {"id": "sparse", "features": {"3": 1}}]}
        answer = client.post("/rank", json=call).json()
        assert {d["id"]: d["score"] for d in answer["documents"]} == {"list": 3, "sparse": 4}
        wrong = client.post("/rank", json={"documents": [{"id": "a", "features": {"4": 1}}]})
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (422, "bad_features")


def test_several_requests_in_one_call_go_to_the_model_that_each_names(tmp_path: Path) -> None:
    cheap, dear = linear_model(tmp_path / "cheap", [-1.0], PRICE), linear_model(tmp_path / "dear", [1.0], PRICE)
    requests: list[dict[str, Any]] = [
        {"query": "a", "documents": documents(1, 2)},
        {"query": "b", "documents": documents(1, 2, 3), "model": "dear"},
        {"query": "c", "documents": documents(5), "model": "cheap"},
    ]
    with serving(cheap, dear) as client:
        results = client.post("/rank", json={"requests": requests}).json()["results"]
        assert [(r["query"], r["model"], ids(r)) for r in results] == [
            ("a", "cheap", ["a", "b"]),
            ("b", "dear", ["c", "b", "a"]),
            ("c", "cheap", ["a"]),
        ]
        models = client.get("/model").json()["models"]
    assert [(m["name"], m["policy"], m["scores"]) for m in models] == [
        ("cheap", "ranksvm", True),
        ("dear", "ranksvm", True),
    ]
    assert models[0]["features"] == [{"name": "price", "kind": "number", "levels": []}]
    assert str(tmp_path) not in str(models)


def test_a_batch_ranks_as_the_policy_alone_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    model = linear_model(tmp_path / "m", rng.standard_normal(5).tolist())
    policy = load_policy(model)
    sizes = rng.integers(1, 30, 40)
    calls = [rng.standard_normal((size, 5)).astype(np.float32) for size in sizes]
    requests = [
        {"documents": [{"id": n, "features": row} for n, row in enumerate(call.tolist())], "k": 7} for call in calls
    ]
    with serving(model) as client:
        results = client.post("/rank", json={"requests": requests}).json()["results"]
    for call, result in zip(calls, results, strict=True):
        ranking = policy.rank(Candidates(call, np.array([0, len(call)]), np.array(["q"])), 7)[0]
        assert ids(result) == [str(index) for index in ranking if index >= 0]


def test_a_policy_that_takes_any_features_needs_none(tmp_path: Path) -> None:
    save_policy(RandomPolicy(1), tmp_path / "random")
    with serving(tmp_path / "random") as client:
        assert sorted(ids(client.post("/rank", json={"documents": [{"id": "x"}, {"id": "y"}]}).json())) == ["x", "y"]


def test_a_request_that_waits_too_long_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuolr.serving.batch_ranker._rank", lambda batch: time.sleep(0.5))
    with serving(linear_model(tmp_path / "m", [1.0], PRICE), limits=Limits(time_limit=0.05)) as client:
        answer = client.post("/rank", json={"documents": documents(1)})
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "timeout")
    assert answer.headers["retry-after"] == "1"


def test_requests_that_find_too_many_documents_waiting_are_sent_away(tmp_path: Path) -> None:
    model, one = linear_model(tmp_path / "m", [1.0], PRICE), {"documents": documents(1, 2)}
    with serving(model, limits=Limits(max_waiting=3)) as client:
        assert client.post("/rank", json={"requests": [one]}).status_code == 200
        answer = client.post("/rank", json={"requests": [one, one]})  # both wait at the same time: 4 documents
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "overloaded")


def test_a_model_that_gives_lists_only_is_served_without_scores(tmp_path: Path) -> None:
    scorer = load_policy(linear_model(tmp_path / "scorer", [1.0], PRICE))
    assert isinstance(scorer, ScoringPolicy)
    save_policy(PlannedPolicy(scorer, LastClickUsers(np.ones((3, 4))), 0.0, 1.0, 0.0), tmp_path / "planned")
    with serving(tmp_path / "planned") as client:
        answer = client.post("/rank", json={"documents": documents(1, 3, 2)}).json()
        assert [model["scores"] for model in client.get("/model").json()["models"]] == [False]
    assert [(d["id"], d["score"]) for d in answer["documents"]] == [("b", None), ("c", None), ("a", None)]


def metrics(client: TestClient) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in client.get("/metrics").text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_metrics_count_calls_documents_and_the_version(tmp_path: Path) -> None:
    with serving(linear_model(tmp_path / "m", [1.0], PRICE)) as client:
        version = client.post("/rank", json={"documents": documents(1, 2)}).json()["version"]
        client.post("/rank", json={"documents": []})
        client.get("/secret-path")
        found = metrics(client)
    assert found['cuolr_calls_total{path="/rank",status="200"}'] == 1
    assert found['cuolr_calls_total{path="/rank",status="422"}'] == 1
    assert found['cuolr_calls_total{path="other",status="404"}'] == 1
    assert found["cuolr_documents_ranked_total"] == 2
    assert found[f'cuolr_model{{name="m",version="{version}"}}'] == 1


def test_the_description_names_bodies_and_answers_without_loose_references(tmp_path: Path) -> None:
    with serving(linear_model(tmp_path / "m", [1.0], PRICE)) as client:
        described = client.get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    wanted = set(re.findall(r"#/components/schemas/(\w+)", str(described)))
    assert wanted <= set(schemas)
    assert {"RankCall", "RankCalls", "Event", "Events", "RankAnswer", "ErrorAnswer"} <= set(schemas)
    assert set(described["paths"]) == {"/rank", "/events", "/health", "/model", "/metrics"}
