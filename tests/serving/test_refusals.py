"""What is refused: one line, a type, no trace; and who may call."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from cuolr.errors import InputError
from cuolr.serving.app import _read, create_app
from cuolr.serving.guard import Access, access_to, is_loopback, listen
from cuolr.serving.refusals import Limits, RefusedCallError
from cuolr.serving.served_models import ServedModels
from cuolr.serving.service import Service
from tests.serving.small_service import PRICE, TestClient, documents, linear_model, serving

JSON = {"Content-Type": "application/json"}
ONE = {"id": "a", "features": {"price": 1}}
LIMITS = Limits(max_body=20_000, max_documents=50, max_requests=3, max_events=2)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("models")
    with serving(linear_model(folder / "m", [1.0], PRICE), limits=LIMITS) as running:
        yield running


def refused(client: TestClient, body: str | bytes, path: str = "/rank") -> tuple[int, str, str]:
    answer = client.post(path, content=body, headers=JSON)
    error = answer.json()["error"]
    assert "\n" not in error["message"]
    assert len(error["message"]) <= 301
    for word in ("Traceback", "File ", ".py", "site-packages"):
        assert word not in answer.text
    return answer.status_code, error["type"], error["message"]


@pytest.mark.parametrize(
    ("body", "status", "kind", "says"),
    [
        ("", 400, "bad_json", "not valid JSON"),
        ("{", 400, "bad_json", "not valid JSON"),
        ('{"documents": [}', 400, "bad_json", "not valid JSON"),
        (b"\xff\xfe", 400, "bad_json", "not valid JSON"),
        ("[" * 5_000, 400, "bad_json", "recursion limit"),
        ('{"a":' * 3_000, 400, "bad_json", "recursion limit"),
        ('{"documents":[{"id":"a","features":{"price":NaN}}]}', 400, "bad_json", "not valid JSON"),
        ('{"documents":[{"id":"a","features":{"price":Infinity}}]}', 400, "bad_json", "not valid JSON"),
        ('{"documents":[{"id":"a","features":{"price":1e999}}]}', 422, "bad_features", "finite numbers"),
        ('{"documents":[{"id":"a","features":{"price":1e39}}]}', 422, "bad_features", "finite numbers in float32"),
        ('{"documents":[{"id":"a","features":{"price":%s}}]}' % ("9" * 400), 422, "bad_features", "float32"),
        ('{"documents":[{"id":"a","features":{"price":%s}}]}' % ("9" * 9_000), 400, "bad_json", "not valid JSON"),
        ("[]", 422, "bad_fields", "expected an object, found a list"),
        ("7", 422, "bad_fields", "expected an object"),
        ("{}", 422, "bad_fields", "documents: Field required"),
        ('{"documents": []}', 422, "bad_fields", "documents: List should have at least 1 item"),
        ('{"documents": [{"features": {}}]}', 422, "bad_fields", "documents[0].id: Field required"),
        ('{"documents": [{"id": ""}]}', 422, "bad_fields", "documents[0].id"),
        ('{"documents": [{"id": "a\\u0000"}]}', 422, "bad_fields", r"match pattern '^[^\x00]+$'"),
        ('{"documents":[{"id":"a","features":{"price":"x"}}]}', 422, "bad_features", "found 'x' in document 'a'"),
        ('{"documents": [{"id": "a", "label": 3}]}', 422, "bad_fields", "documents[0].label: Extra inputs"),
        (json.dumps({"documents": [ONE, ONE]}), 422, "bad_fields", "expected each id once, found 'a' twice"),
        (json.dumps({"documents": [ONE], "k": 0}), 422, "bad_fields", "k: Input should be greater"),
        (json.dumps({"documents": [ONE], "model": "n"}), 404, "unknown_model", "unknown model 'n'"),
        (json.dumps({"documents": [{"id": "a", "features": {}}]}), 422, "bad_features", "'price' is missing"),
        (
            json.dumps({"documents": [{"id": "a", "features": {"Price": 1}}]}),
            422,
            "bad_features",
            "did you mean 'price'",
        ),
        (
            json.dumps({"documents": [{"id": "a", "features": {"price": 1, "size": 2}}]}),
            422,
            "bad_features",
            "'size' is not one of the model",
        ),
        (
            json.dumps({"documents": [{"id": "a", "features": [1, 2]}]}),
            422,
            "bad_features",
            "expected 1 features, found 2",
        ),
        (json.dumps({"documents": [{"id": "a", "features": {"price": [1]}}]}), 422, "bad_features", "found a list"),
        (json.dumps({"documents": [{"id": "a", "features": {"price": "dear"}}]}), 422, "bad_features", "found 'dear'"),
        (json.dumps({"documents": documents(*range(51))}), 413, "too_many", "at most 50, found 51"),
        (json.dumps({"requests": [{"documents": [ONE]}] * 4}), 413, "too_many", "requests: expected at most 3"),
        (
            json.dumps({"requests": [{"documents": [ONE]}, {"documents": [{"id": 1}]}]}),
            422,
            "bad_features",
            "requests[1]: ",
        ),
        (" " * 20_001, 413, "too_large", "at most 20,000 bytes"),
    ],
)
def test_a_bad_call_is_refused_in_one_line(client: TestClient, body: str, status: int, kind: str, says: str) -> None:
    found = refused(client, body)
    assert found[:2] == (status, kind)
    assert says in found[2]


def test_a_document_that_the_model_cannot_score_is_named(tmp_path: Path) -> None:
    with serving(linear_model(tmp_path / "m", [1e30], PRICE)) as client:  # 1e30 · 1e30 is above the range of float32
        found = refused(client, json.dumps({"documents": documents(1, 1e30, 2)}))
    assert found[:2] == (422, "no_score")
    assert found[2].startswith("document 'b': the model gives no score")


@pytest.mark.thorough
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_no_json_makes_the_service_fail(client: TestClient, value: Any) -> None:
    for body in (value, {"documents": value}, {"documents": [{"id": "a", "features": value}]}, {"requests": value}):
        answer = client.post("/rank", content=json.dumps(body), headers=JSON)
        assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text


MANY = 200_000


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        ({"documents": [{"id": "a", "features": {f"x{n}": 1 for n in range(MANY)}}]}, "bad_features", "200,000 more"),
        ({"documents": [1] * MANY}, "bad_fields", "documents[0]"),
        ({"requests": [{}] * MANY}, "bad_fields", "requests[0]"),
        ({f"x{n}": 1 for n in range(MANY)}, "bad_fields", "found 200,000"),
        ({"documents": [{f"x{n}": 1 for n in range(MANY)}]}, "bad_fields", "found 200,000"),
        ({"documents": [{"id": f"{n % 9_999}", "features": [1]} for n in range(10_000)]}, "bad_fields", "'0' twice"),
    ],
)
def test_many_mistakes_cost_no_more_than_one(tmp_path: Path, body: Any, kind: str, says: str) -> None:
    """All calls wait while one is read: minutes, if each mistake had a message of its own."""
    with serving(linear_model(tmp_path / "m", [1.0], PRICE)) as running:
        found = refused(running, json.dumps(body))
    assert found[:2] == (422, kind)
    assert says in found[2]


def test_text_from_the_caller_cannot_break_the_line(client: TestClient) -> None:
    call = {"documents": [{"id": "a\n<script>\x1b[31m", "features": []}]}
    assert refused(client, json.dumps(call))[2] == "document 'a <script> [31m': expected 1 features, found 0"


def test_other_paths_methods_and_types_are_refused_in_the_same_form(client: TestClient) -> None:
    for answer, status, kind in (
        (client.get("/nothing"), 404, "not_found"),
        (client.get("/rank"), 405, "method_not_allowed"),
        (client.post("/rank", content="{}", headers={"Content-Type": "text/plain"}), 415, "bad_type"),
        (client.get("/docs"), 404, "not_found"),
    ):
        assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)


def test_events_need_a_log(client: TestClient) -> None:
    assert refused(client, json.dumps({"request_id": "x", "document": "a"}), "/events")[:2] == (409, "no_log")


def test_every_answer_has_the_headers_of_safety(client: TestClient) -> None:
    for path in ("/health", "/model", "/metrics", "/nothing"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["x-content-type-options"] == "nosniff"


def test_a_defect_says_nothing_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(batch: Any) -> Any:
        raise RuntimeError(f"secret {tmp_path}")

    monkeypatch.setattr("cuolr.serving.batch_ranker._rank", fail)
    with serving(linear_model(tmp_path / "m", [1.0], PRICE)) as running:
        answer = running.post("/rank", json={"documents": documents(1)})
        assert running.get("/health").json() == {"status": "ok"}
    assert answer.status_code == 500
    assert answer.json() == {"error": {"type": "internal", "message": "the service failed; its own log says why"}}


TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ü"])
def test_a_wrong_token_is_refused(tmp_path: Path, given: str) -> None:
    with serving(linear_model(tmp_path / "m", [1.0], PRICE), access=Access(token=TOKEN)) as running:
        answer = running.get("/model", headers={"Authorization": given.encode()})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert running.get("/model", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert running.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("LOCALHOST", 200),
        ("[::1]:80", 200),
        ("evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("", 400),
        ("[", 400),
    ],
)
def test_only_calls_by_a_known_name_are_answered(client: TestClient, host: str, status: int) -> None:
    assert client.get("/model", headers={"Host": host}).status_code == status


def test_an_address_that_others_reach_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUOLR_TOKEN", raising=False)
    assert access_to("127.0.0.1", None).token is None
    for host in ("0.0.0.0", "192.168.1.5", "::", "search.example"):
        with pytest.raises(InputError, match="needs a bearer token"):
            access_to(host, None)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    access = access_to("192.168.1.5", tmp_path / "token", ["Search.example"])
    assert access.token == TOKEN
    assert {"192.168.1.5", "search.example", "localhost"} <= set(access.hosts)
    monkeypatch.setenv("CUOLR_TOKEN", TOKEN)
    assert access_to("::", None).token == TOKEN
    (tmp_path / "token").write_text("short")
    with pytest.raises(InputError, match="expected a token of 16 or more"):
        access_to("::1", tmp_path / "token")
    with pytest.raises(InputError, match="file not found"):
        access_to("::1", tmp_path / "nothing")


def test_loopback_is_recognised() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")] == [True] * 4
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.example"))


def test_a_port_that_is_taken_is_one_line() -> None:
    with listen("127.0.0.1", 0) as first, pytest.raises(InputError, match="cannot listen there"):
        listen("127.0.0.1", first.getsockname()[1])


@pytest.mark.parametrize("host", ["nothing.invalid", "two..dots", "x" * 64])
def test_a_host_that_is_none_is_one_line(host: str) -> None:
    with pytest.raises(InputError, match=rf"--host {host} --port 0: cannot listen there \(\w+"):
        listen(host, 0)


def test_a_body_that_does_not_arrive_is_refused(tmp_path: Path) -> None:
    async def nothing() -> Any:
        await asyncio.sleep(60)

    models = ServedModels.load([linear_model(tmp_path / "m", [1.0])])
    request = Request({"type": "http", "headers": [(b"content-type", b"application/json")]}, nothing)
    with pytest.raises(RefusedCallError, match="the body did not arrive in time") as found:
        asyncio.run(_read(request, Service(models, limits=Limits(time_limit=0.01))))
    assert found.value.status == 408


def test_models_need_different_names(tmp_path: Path) -> None:
    one, two = linear_model(tmp_path / "x" / "m", [1.0]), linear_model(tmp_path / "y" / "m", [1.0])
    with pytest.raises(InputError, match="different names, found 'm' twice"):
        ServedModels.load([one, two])
    with pytest.raises(InputError, match="found none"):
        ServedModels.load([])


@dataclass(frozen=True)
class Page:
    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str]


def test_pages_keep_their_own_policy_and_need_the_same_host_and_token(tmp_path: Path) -> None:
    policy = {"Content-Security-Policy": "default-src 'none'; connect-src 'self'"}
    seen: list[str] = []

    def pages(target: str) -> Page:
        seen.append(target)
        return Page(200 if target == "/" else 404, "text/html; charset=utf-8", b"<p>&lt;script&gt;", policy)

    service = Service(ServedModels.load([linear_model(tmp_path / "m", [1.0], PRICE)]))
    app = create_app(service, Access(token=TOKEN), pages)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as running:
        answer = running.get("/browse")
        assert (answer.status_code, answer.text) == (200, "<p>&lt;script&gt;")
        assert answer.headers["content-security-policy"] == policy["Content-Security-Policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert running.get("/browse/query?id=a%26b").status_code == 404
        assert running.get("/browse/", headers={"Authorization": "no"}).status_code == 401
        assert running.get("/browse/", headers={"Host": "evil.example"}).status_code == 400
    assert seen == ["/", "/query?id=a%26b"]
