import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from email.message import Message

import pytest

from cuolr.browsing.browse_server import BrowsePages, browse_server
from cuolr.errors import InputError
from tests.browsing.hostile import SCRIPT, hostile_page


@pytest.fixture(scope="module")
def pages() -> BrowsePages:
    return BrowsePages(hostile_page(queries=2))


@pytest.fixture(scope="module")
def address(pages: BrowsePages) -> Iterator[str]:
    with browse_server(pages, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def fetch(address: str, method: str = "GET", **headers: str) -> tuple[int, Message, bytes]:
    request = urllib.request.Request(address, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def test_the_page_and_any_query_are_served(address: str) -> None:
    status, headers, body = fetch(f"{address}/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Server"].strip() == "cuolr"
    assert b"What this model would change" in body
    for query in (SCRIPT, "shoes", "Red Hats & more", "%2e#q=?&"):
        status, headers, body = fetch(f"{address}/query?id={urllib.parse.quote(query, safe='')}")
        assert (status, json.loads(body)["query_id"]) == (200, query)
        assert b"<" not in body


def test_the_head_alone_has_no_body(address: str) -> None:
    assert fetch(f"{address}/", method="HEAD")[2] == b""


@pytest.mark.parametrize(
    ("target", "status", "error"),
    [
        ("/query?id=rare", 404, "hidden for people's privacy"),
        ("/query?id=nothing", 404, "expected a query of the log"),
        ("/query", 400, "Expected one query"),
        ("/query?id=a&id=b", 400, "Expected one query"),
        ("/../../etc/passwd", 404, "no such page"),
        ("/query/shoes", 404, "no such page"),
        (f"/query?id={'x' * 9000}", 404, "no such page"),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(address: str, target: str, status: int, error: str) -> None:
    found, _, body = fetch(address + target)
    assert found == status
    assert error in json.loads(body)["error"]
    assert b"Traceback" not in body


@pytest.mark.parametrize(
    "target", ["//[", "//evil.example/", "//x/query?id=shoes", "/query?id=%00", "/query?id=%ff%fe", "/%2e%2e/"]
)
def test_no_target_makes_the_pages_fail(pages: BrowsePages, target: str) -> None:
    assert pages.answer(target).status == 404


def test_another_host_or_method_is_refused(address: str) -> None:
    assert fetch(f"{address}/", Host="evil.example")[0] == 403
    assert fetch(f"{address}/", Host="127.0.0.1.evil.example:80")[0] == 403
    assert fetch(f"{address}/", Host="localhost")[0] == 200
    assert fetch(f"{address}/", method="POST")[0] == 501


def test_a_port_in_use_is_one_line(pages: BrowsePages, address: str) -> None:
    port = int(address.rpartition(":")[2])
    with pytest.raises(InputError, match=rf"--port {port}: .*choose another"):
        browse_server(pages, port)
