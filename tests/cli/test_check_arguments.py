import re
import shlex
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro

from cuolr.cli.check_arguments import check_command
from cuolr.cli.main import COMMANDS
from cuolr.errors import InputError
from tests.cli.conftest import Run


def command(
    log: tyro.conf.Positional[Path],
    out: Path,
    k: int = 10,
    eta: float | None = None,
    missing: Literal["zero", "minimum"] = "zero",
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set"), tyro.conf.UseAppendAction] = (),
    many_words: str = "",
    json: bool = False,
) -> None:
    """A command."""


def problems(text: str) -> list[str]:
    try:
        check_command("verb", command, shlex.split(text))
    except InputError as error:
        *first, last = error.problems
        assert last.endswith("; see `cuolr verb --help`")
        return [*first, last.removesuffix("; see `cuolr verb --help`")]
    return []


@pytest.mark.parametrize(
    "text",
    [
        "log --out o",
        "--out o log",
        "--out=o -- -log",
        "log --out o --k -3 --eta -1e-3 --json",
        "log --out o --set a=1 --set=b=-2 --missing minimum",
        "log --out o --many_words 'a b' --many-words=--c",
    ],
)
def test_what_can_be_parsed_is_let_through(text: str) -> None:
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["LOG is missing", "--out PATH is missing"]),
        ("log --oot o", ["--oot: unknown option (did you mean '--out'?)", "--out PATH is missing"]),
        ("log --out o -k 3", ["-k: unknown option (did you mean '--k'?)"]),
        ("log other --out o", ["unexpected argument 'other'"]),
        ("log --out", ["--out: expected a value, PATH, found none"]),
        ("log --out --json", ["--out: expected a value, PATH, found none"]),
        ("log --out o --json=1", ["--json: takes no value, found '1'"]),
        (
            "log --out o --k 1.5 --eta x",
            ["--k: expected a whole number, found '1.5'", "--eta: expected a number, found 'x'"],
        ),
        ("log --out o --missing zer", ["--missing: expected one of zero, minimum, found 'zer' (did you mean 'zero'?)"]),
        ("log --out o --k None", ["--k: expected a whole number, found 'None'"]),
    ],
)
def test_each_problem_is_one_line(text: str, expected: list[str]) -> None:
    assert problems(text) == expected


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_is_let_through(name: str) -> None:
    _, verb, *arguments = shlex.split(COMMANDS[name].example)
    check_command(verb, COMMANDS[verb].load(), arguments)


def test_nothing_but_these_lines_is_printed(run: Run) -> None:
    result = run("train", "LOG", "--steps", "many")
    assert (result.status, result.out) == (2, "")
    assert result.err.splitlines() == [
        "error: --steps: expected a whole number, found 'many'",
        "error: --out PATH is missing; see `cuolr train --help`",
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_answers_an_unknown_option_with_a_box(run: Run, name: str) -> None:
    result = run(name, "--no-such-option", "1")
    assert result.status == 2
    assert re.match(r"error: --no-such-option: unknown option", result.err)
    assert all(line.startswith("error: ") for line in result.err.splitlines())
