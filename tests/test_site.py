"""The site builds without a warning, has every page and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.thorough
def test_the_site_builds_strictly_and_is_self_contained(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "CUOLR_SKIP_TUTORIALS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    pages = {
        page.relative_to(tmp_path).as_posix(): page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")
    }
    assert {
        "index.html",
        "learners/factored.html",
        "reference/commands.html",
        "reference/settings.html",
    } <= pages.keys()
    assert "cuolr import-log" in pages["reference/commands.html"]
    assert "prior_strength" in pages["reference/settings.html"]
    assert 'class="doc doc-heading"' in pages["reference/python-api.html"]
    # Search works in a page that is opened from a folder: its index is a script, too.
    assert (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    assert 'src="iframe-worker.js"' in pages["index.html"]
    for name, page in pages.items():
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="(https?:[^"]+)"', page)
        loaded += re.findall(r'<link[^>]* rel="stylesheet"[^>]* href="(https?:[^"]+)"', page)
        assert not loaded, name
