import re
import shlex
from pathlib import Path

import pytest

from cuolr.cli.help import command_help
from cuolr.cli.main import GROUPS
from cuolr.training.base_learner import LEARNERS

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()


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


def test_every_command_and_flag_exists() -> None:
    lines = [line.partition("#")[0] for block in blocks("sh") for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("cuolr ")]
    assert len(commands) >= 10
    for _, verb, *arguments in commands:
        (command,) = (group[verb] for group in GROUPS.values() if verb in group)
        known = re.findall(r"^  (--[a-z-]+)", command_help(verb, command), flags=re.MULTILINE)
        assert {argument for argument in arguments if argument.startswith("--")} <= set(known), verb


def test_every_make_target_and_link_exists() -> None:
    root = Path(__file__).resolve().parents[1]
    makefile = (root / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (root / link).exists(), link


@pytest.mark.parametrize("learner", LEARNERS.names())
def test_every_learner_has_a_page(learner: str) -> None:
    page = Path(__file__).resolve().parents[1] / "docs" / "learners" / f"{learner}.md"
    assert page.read_text().startswith(f"# {learner}\n")
