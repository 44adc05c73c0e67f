import re
import shlex
from pathlib import Path

import pytest

from cuolr.cli.help import command_help
from cuolr.cli.main import GROUPS
from cuolr.training.base_learner import LEARNERS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


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
        (command,) = (group[verb] for group in GROUPS.values() if verb in group)
        known = re.findall(r"^  (?:-h, )?(--[a-z-]+)", command_help(verb, command), flags=re.MULTILINE)
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
