"""The glossary of pages is that of the site."""

import re
from pathlib import Path

import pytest

from cuolr.glossary import OF_BROWSING, OF_EXPERIMENTS, OF_LOGS, glossary

ROWS = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("word", sorted({*OF_BROWSING, *OF_EXPERIMENTS, *OF_LOGS}))
def test_a_word_has_the_meaning_that_the_site_gives(word: str) -> None:
    (row,) = (row for row in ROWS if row.startswith(f"| {word} |"))
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", row).replace("`", "")
    assert glossary([word])[word].removesuffix(".") in plain
