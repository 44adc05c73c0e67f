import contextlib
import inspect
import io
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro

from cuolr.cli.check_arguments import check_command
from cuolr.cli.docstrings import Docstring
from cuolr.cli.help import command_help, with_no_verify
from cuolr.cli.main import COMMANDS, GROUPS, PARSING
from cuolr.errors import InputError
from tests.cli.conftest import Run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "command-line.md").read_text()
EXAMPLES = {name: command.example for name, command in COMMANDS.items()}
# Accepted only to be refused with what to use instead.
NOT_SHOWN = {"experiment": {"--fold"}, "tune": {"--fold"}}
FLAG = re.compile(r"^(?: |│|\|) (--[a-z][\w-]*)", re.MULTILINE)


def test_the_overview_has_the_commands_in_groups_a_line_each(run: Run) -> None:
    result = run("--help")
    assert result.status == 0
    assert max(map(len, result.out.splitlines())) <= 80
    assert re.findall(r"^(\w.*):$", result.out, re.MULTILINE) == ["Your log", "Models", "Experiments", "Data"]
    assert re.findall(r"^  ([a-z-]+)  ", result.out, re.MULTILINE) == list(COMMANDS)


def test_without_arguments_the_overview_is_shown(run: Run) -> None:
    assert run().out == run("-h").out == run("--help").out


def test_help_can_be_asked_for_as_a_command(run: Run) -> None:
    assert run("help") == run("--help")
    assert run("help", "train") == run("train", "--help")
    unknown = run("help", "trian")
    assert (unknown.status, unknown.out) == (2, "")
    assert "unknown command 'trian' (did you mean 'train'?)" in unknown.err


def test_the_version_is_one_line(run: Run) -> None:
    assert run("--version").out == "cuolr 1.0.0\n"


@pytest.mark.parametrize("wrong", ["trian", "--trian", "TRAIN", "train "])
def test_an_unknown_command_is_one_line_with_a_guess(run: Run, wrong: str) -> None:
    result = run(wrong, "--out", "x")
    assert (result.status, result.out) == (2, "")
    guess = "" if wrong.isupper() else " (did you mean 'train'?)"
    assert result.err == f"error: unknown command '{wrong}'{guess}; `cuolr --help` lists all\n"


def tyros_help(name: str) -> str:
    """What tyro, which reads the arguments, says that it takes."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        tyro.cli(COMMANDS[name].load(), prog=f"cuolr {name}", args=["--help"], config=PARSING)
    return re.sub(r"\x1b\[[\d;]*m", "", text.getvalue())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_exactly_the_options_that_it_takes(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    flags = FLAG.findall(run(name, "--help").out)
    assert len(flags) == len(set(flags))
    assert set(flags) == set(FLAG.findall(tyros_help(name))) - NOT_SHOWN.get(name, set())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_80_columns_and_says_what_each_option_is(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run(name, "--help")
    assert result.status == 0
    assert result.out.startswith(f"usage: cuolr {name} ")
    assert max(map(len, result.out.splitlines())) <= 80
    assert "None" not in result.out
    assert "{None}" not in tyros_help(name), "in its messages it calls values so too"
    described = Docstring.parse(COMMANDS[name].load().__doc__).entries
    assert described.keys() == inspect.signature(COMMANDS[name].load()).parameters.keys()


def test_an_option_shows_its_value_and_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def sort(
        files: tyro.conf.Positional[tuple[Path, ...]],
        order: Literal["up", "down"],
        limit: int | None = None,
        seed: int = 0,
        columns: tuple[str, ...] = ("a", "b"),
        assign: Annotated[
            tuple[str, ...], tyro.conf.arg(name="set", metavar="NAME=VALUE"), tyro.conf.UseAppendAction
        ] = (),
        stable: bool = False,
        method: Annotated[str, tyro.conf.arg(metavar="NAME")] | None = None,
    ) -> None:
        """Sort files.

        Numbers come before words, and words are compared letter by letter, as in a dictionary.

        Args:
            files: What to sort.
            order: Direction.
            limit: Number of rows. By default all.
            seed: Seed of it, with `--method random --stable` alone.
            columns: Keys.
            assign: Any setting.
            stable: Keep ties.
            method: Algorithm.
        """

    assert command_help("sort", sort, "cuolr sort a.csv --order up", width=60) == textwrap.dedent(
        """\
        usage: cuolr sort FILES... --order {up,down} [options]

        Sort files.

        Numbers come before words, and words are compared letter by
        letter, as in a dictionary.

        Arguments:
          FILES...           What to sort.

        Required options:
          --order {up,down}  Direction.

        Options:
          --limit INT        Number of rows. By default all.
          --seed INT         Seed of it, with
                             `--method random --stable` alone.
                             (default: 0)
          --columns TEXT...  Keys. (default: a b)
          --set NAME=VALUE   Any setting. Repeatable.
          --stable           Keep ties.
          --method NAME      Algorithm.
          -h, --help         Show this help.

        Example:
          cuolr sort a.csv --order up"""
    )


@pytest.mark.parametrize("indent", ["", " " * 4], ids=["as Python 3.13 compiles it", "as in the file"])
def test_an_added_option_has_its_line_however_the_docstring_is_indented(indent: str) -> None:
    def count(rows: int = 0) -> None: ...

    count.__doc__ = "Count.\n\n" + textwrap.indent("Args:\n    rows: How many.\n", indent) + indent
    described = Docstring.parse(with_no_verify(count).__doc__)
    assert described.entries == {
        "rows": "How many.",
        "no_verify": "Do not compare logs, models and results with their hashes.",
    }


def test_the_page_of_the_command_line_lists_every_command_with_its_example() -> None:
    for title, commands in GROUPS.items():
        _, _, section = PAGE.partition(f"## {title}\n")
        section = section.partition("\n## ")[0]
        assert re.findall(r"^\| `([a-z-]+)` \| (.*?) \|$", section, re.MULTILINE) == [
            (name, command.summary) for name, command in commands.items()
        ]
        assert [line for line in section.splitlines() if line.startswith("cuolr ")] == [
            command.example for command in commands.values()
        ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_what_the_command_requires_and_nothing_unknown(name: str) -> None:
    program, verb, *arguments = shlex.split(EXAMPLES[name])
    assert (program, verb) == ("cuolr", name)
    text = command_help(name, COMMANDS[name].load(), EXAMPLES[name], width=100)
    assert {argument for argument in arguments if argument.startswith("--")} <= set(FLAG.findall(text))
    usage = text.partition("\n\n")[0]
    assert set(re.findall(r"--[\w-]+", usage)) <= set(arguments)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_knows_the_commands_and_their_options(run: Run, shell: str) -> None:
    result = run("--completion", shell)
    assert result.status == 0
    assert all(name in result.out for name in (*COMMANDS, "randomised-lists"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_and_options(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cuolr.bash").write_text(run("--completion", "bash").out)
    for words, expected in ((["cuolr", "ra"], "rank"), (["cuolr", "rank", "MODEL", "--cand"], "--candidates")):
        program = f"""
            PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH
            source {shlex.quote(str(tmp_path / "cuolr.bash"))}
            COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}
            $(complete -p cuolr | sed 's/.*-F \\([^ ]*\\).*/\\1/')
            echo "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [expected], done.stderr


@pytest.mark.parametrize(("arguments", "found"), [((), "none"), (("csh",), "'csh'")])
def test_another_shell_is_refused(run: Run, arguments: tuple[str, ...], found: str) -> None:
    result = run("--completion", *arguments)
    assert (result.status, result.err) == (
        2,
        f"error: --completion: expected a shell, bash, zsh, fish, found {found}\n",
    )


@pytest.mark.parametrize("name", ["experiment", "tune"])
def test_an_option_that_is_always_refused_is_not_in_the_help(run: Run, name: str) -> None:
    assert "--fold" not in run(name, "--help").out
    assert "--fold INT" in run("inspect", "--help").out


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
