import json
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from email.message import Message
from html.parser import HTMLParser

import pytest

from cuolr.browsing.browse_page import BrowsePage, embedded_json
from cuolr.browsing.browse_server import BrowsePages, browse_server
from cuolr.errors import InputError
from tests.browsing.hand_made import PICTURE, SCRIPT, hostile_page


class Elements(HTMLParser):
    """The elements of a page, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] == "script":
            self.scripts.append(data)


@pytest.fixture(scope="module")
def page() -> BrowsePage:
    return hostile_page()


def test_whatever_a_log_holds_the_page_has_its_own_elements_only(page: BrowsePage) -> None:
    for text in (page.with_all_queries(), page.with_server()):
        found = Elements(text)
        assert [tag for tag, _ in found.found].count("script") == 2
        assert "img" not in [tag for tag, _ in found.found]
        data = json.loads(found.scripts[0])
        assert {SCRIPT, PICTURE, "shoes"} <= {row["query_id"] for row in data["overview"]["rows"]}


def test_nothing_is_loaded_from_anywhere(page: BrowsePage) -> None:
    found = Elements(page.with_all_queries())
    addresses = [value for _, values in found.found for name, value in values.items() if name in ("src", "href")]
    assert addresses == ["data:,"]
    (policy,) = (v["content"] for t, v in found.found if t == "meta" and v.get("http-equiv"))
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    assert "connect-src 'self'" in page.content_security_policy


def test_a_file_has_the_views_of_its_queries_and_hides_the_rare_one(page: BrowsePage) -> None:
    data = json.loads(Elements(page.with_all_queries()).scripts[0])
    assert set(data["views"]) == {row["query_id"] for row in data["overview"]["rows"]}
    assert "rare" not in data["views"]
    assert "rare" not in re.findall(r"\w+", page.with_all_queries().partition('id="data"')[2].partition("</script>")[0])
    assert (data["overview"]["hidden"], data["overview"]["shown"]) == (1, 5)
    assert json.loads(Elements(page.with_server()).scripts[0])["views"] is None


def test_rows_come_worst_losses_first_and_can_be_fewer() -> None:
    few = hostile_page(queries=2)
    rows = few.overview.rows
    assert len(rows) == 2
    assert few.overview.shown == 5
    changes = [row.change for row in rows if row.change is not None]
    assert changes == sorted(changes)


def test_numbers_that_json_cannot_hold_become_null() -> None:
    assert embedded_json({"a": [float("inf"), float("nan"), 1.0]}) == '{"a":[null,null,1.0]}'


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
