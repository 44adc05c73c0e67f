"""Commands, links and examples of README, docs and docstrings are real; the site builds, with all of its own."""

import doctest
import importlib
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import cuolr
from cuolr.cli.help import command_help
from cuolr.cli.main import COMMANDS
from cuolr.clicks.click_model import CLICK_MODELS
from cuolr.data.letor.reader import write_letor
from cuolr.policies.random_policy import RandomPolicy
from cuolr.training.base_learner import LEARNERS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
EXAMPLES = [
    pytest.param(example, id=f"{page.relative_to(DOCS)}-{number}")
    for page in sorted(DOCS.rglob("*.md"))
    for number, example in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL), start=1)
]
SOURCE = Path(cuolr.__file__).parent
WITH_DOCTESTS = [
    ".".join(("cuolr", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for file in sorted(SOURCE.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pages take for granted: a log LOG and documents to rank."""
    train, _, test = cuolr.generate_splits("tiny", 12, 4, 4, seed=1)
    log = cuolr.simulate(train, RandomPolicy(1), cuolr.click_model("pbm"), sessions=200, k=3)
    cuolr.save_click_log(log, str(tmp_path / "LOG"))
    write_letor(test, tmp_path / "documents.txt")
    monkeypatch.chdir(tmp_path)
    for registry in (LEARNERS, CLICK_MODELS):
        registry._load()  # what is imported later would go with it, too
        monkeypatch.setattr(registry, "_entries", {**registry._entries})  # what an example registers goes with it


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str) -> None:
    exec(compile(re.sub(r"steps=\d+", "steps=3", example), "example", "exec"), {})


@pytest.mark.parametrize("module", WITH_DOCTESTS)
def test_the_examples_of_docstrings_run(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.thorough
def test_two_weeks_of_a_shop(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / "tutorials" / "1-own-log.py"))
    said = capsys.readouterr().out
    assert "week 1: kept 6,000 of 6,000 sessions" in said
    assert "assessed on week 2: ship" in said
    assert "both weeks: 12,000 sessions" in said


@pytest.mark.thorough
@pytest.mark.parametrize("script", sorted((DOCS / "tutorials").glob("*.py"))[1:], ids=lambda script: script.stem)
def test_a_tutorial_runs(script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(LEARNERS, "_entries", {**LEARNERS._entries})  # what it registers goes with it
    monkeypatch.setenv("MPLBACKEND", "agg")
    runpy.run_path(str(script))
    assert capsys.readouterr().out


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
    assert len(WITH_DOCTESTS) >= 30


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    assert len([line for line in example.splitlines() if line.strip()]) == 5
    exec(compile(example, "README.md", "exec"), {})
    value = float(re.fullmatch(r"\{'ndcg@10': (0\.\d+)\}\n", capsys.readouterr().out)[1])  # type: ignore[index]
    assert 0.3 < value < 1


def commands_in(page: Path) -> list[list[str]]:
    """The words of each line of a code block that starts with `cuolr`."""
    shown = re.findall(r"```(?:sh)?\n(.*?)```", page.read_text(), flags=re.DOTALL)
    lines = [line.partition(" #")[0] for block in shown for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("cuolr ") and not line.startswith("cuolr --")]


@every_page
def test_every_command_and_flag_of_a_page_exists(page: Path) -> None:
    for _, verb, *arguments in commands_in(page):
        command = COMMANDS[verb]
        known = re.findall(
            r"^  (?:-h, )?(--[a-z-]+)", command_help(verb, command.load(), command.example), flags=re.MULTILINE
        )
        assert {argument for argument in arguments if argument.startswith("--")} <= set(known), verb


def test_pages_show_commands() -> None:
    assert len(commands_in(ROOT / "README.md")) >= 6
    assert len([command for page in PAGES for command in commands_in(page)]) >= 80


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@every_page
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("learner", LEARNERS.names())
def test_every_learner_has_a_page(learner: str) -> None:
    page = ROOT / "docs" / "learners" / f"{learner}.md"
    assert page.read_text().startswith(f"# {learner}\n")


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
    assert "prior_<wbr>strength</code>" in pages["reference/settings.html"]
    assert '<code><span class="flag">--temperature</span> 0.5</code>' in pages["index.html"]
    assert 'class="doc doc-heading"' in pages["reference/python-api.html"]
    # Search works in a page that is opened from a folder: its index is a script, too.
    assert (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    assert "prior_strength" in (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8")
    assert 'src="iframe-worker.js"' in pages["index.html"]
    for name, page in pages.items():
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="(https?:[^"]+)"', page)
        loaded += re.findall(r'<link[^>]* rel="stylesheet"[^>]* href="(https?:[^"]+)"', page)
        assert not loaded, name
        links = re.findall(r'(?:href|src)="((?!\w+:|/|#)[^"#?]+)', page)
        assert not [link for link in links if not (tmp_path / name).parent.joinpath(unquote(link)).exists()], name
