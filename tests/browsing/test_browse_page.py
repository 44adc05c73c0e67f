import json
import re
from html.parser import HTMLParser

import pytest

from cuolr.browsing.browse_page import BrowsePage, embedded_json
from tests.browsing.hostile import PICTURE, SCRIPT, hostile_page


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
