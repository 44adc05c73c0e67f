"""Pages of the site that are made from the code when it is built: commands, settings, Python names and files."""

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from packaging.requirements import Requirement

import cuolr
from cuolr.cli.docstrings import meanings_of_fields
from cuolr.cli.help import command_help
from cuolr.cli.list import SettingHelp, entries_of, settings
from cuolr.cli.main import GROUPS
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import OPTIONAL, REQUIRED

# The modules whose docstrings describe what is written to disk.
FORMATS = {
    "A log": "cuolr.logs.log_folder",
    "The documents of a log": "cuolr.data.candidate_store",
    "A model": "cuolr.policies.model_folder",
    "A training run": "cuolr.training.run_folder",
    "Results of an experiment": "cuolr.experiments.results_folder",
    "Packed results": "cuolr.experiments.packed_results",
}
# What refers to another module in their docstrings.
REFERENCE = re.compile(r",? see `[\w.]+`")
# Sections of the navigation that have all pages of a folder.
SECTIONS = {"Learners": "learners", "Results": "results", "Decisions": "decisions"}
# Links from a page to files outside docs, which the site does not have.
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:src|tests|studies|benchmarks)/[^)#]+|[A-Z]+\.md)(?:#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation: a section for each folder below, README first; any other page is a how-to."""
    docs = Path(config.docs_dir)
    found = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    for title, folder in SECTIONS.items():
        pages = sorted((page for page in found if page.startswith(f"{folder}/")), key=_readme_first)
        config.nav.append({title: [_named(page) for page in pages]})
        found -= set(pages)
    (how_to,) = (section["How-to"] for section in config.nav if "How-to" in section)
    how_to += sorted(found - set(_pages(config.nav)))
    return config


def _named(page: str) -> str | dict[str, str]:
    """A page, with the name of its folder if that has one page: results of an experiment share their heading."""
    return {Path(page).parent.name: page} if page.endswith("/tables.md") else page


def _readme_first(page: str) -> tuple[bool, bool, str]:
    """README, pages, then the tables of single experiments."""
    return not page.endswith("README.md"), page.endswith("/tables.md"), page


def _pages(nav: Any) -> Iterator[str]:
    """The pages that a part of the navigation names."""
    match nav:
        case str():
            yield nav
        case Mapping():
            yield from _pages(list(nav.values()))
        case list():
            for part in nav:
                yield from _pages(part)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {
        "commands": commands(),
        "settings": all_settings(),
        "python-api": python_api(),
        "files": formats(),
        "dependencies": dependencies(),
    }
    for name, content in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name files outside docs instead of linking to them."""
    return OUTSIDE.sub(r"\1 (`\2`)", markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let lines break after the parts of a name in a text, and not within a flag: `--` is not the end of a word."""
    return re.sub(r"<pre.*?</pre>|<code>([^<]*)</code>", _breakable, html, flags=re.DOTALL)


def _breakable(found: re.Match[str]) -> str:
    if found[1] is None:  # a block of code
        return found[0]
    text = re.sub(r"(?<=[A-Za-z])([._/])(?=[A-Za-z])", r"\1<wbr>", found[1])
    text = re.sub(r"--[a-z][a-z-]*", r'<span class="flag">\g<0></span>', text)
    return f"<code>{text}</code>"


def commands() -> str:
    """The help of every command."""
    parts = ["# Every command and option", "`cuolr COMMAND --help` shows the same in a terminal."]
    for group, of_group in GROUPS.items():
        parts.append(f"## {group}")
        for name, command in of_group.items():
            text = command_help(name, command.load(), command.example, width=80)
            parts.append(f"### {name}\n\n```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def all_settings() -> str:
    """The settings of training, and of every learner, encoder and click model."""
    parts = [
        "# Every setting",
        "`cuolr list NAME` shows the same in a terminal, such as `cuolr list cql` or `cuolr list training`. `train` "
        "takes those of a learner by `--set learner.NAME=VALUE`, and those of training by `--set training.NAME=VALUE`. "
        "Defaults are those of the default [preset](../training.md#presets).",
        "## Training",
        "What all learners share.",
        _table(settings("training")["training"]),
    ]
    for kind, title in {"learners": "Learners", "encoders": "State encoders", "click-models": "Click models"}.items():
        parts.append(f"## {title}")
        singular = kind.removesuffix("s").replace("-", " ")
        for name, entry in sorted(entries_of(kind).items()):
            rows = settings(name).get(singular, [])
            parts.append(f"### {name}" + ("" if kind == "learners" else f" ({singular})"))
            parts.append(entry["description"] + ".")
            parts.append(_table(rows) if rows else "It has no settings.")
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[SettingHelp]) -> str:
    head = "| setting | default | range | meaning |\n|---|---|---|---|"
    return "\n".join([head, *("| " + " | ".join(_cells(row)) + " |" for row in rows)])


def _cells(row: SettingHelp) -> Iterator[str]:
    for value, is_code in ((row.name, True), (row.default, True), (row.range, False), (row.meaning, False)):
        text = " ".join(value.split()).replace("|", "\\|")
        yield f"`{text}`" if is_code and text else text


def python_api() -> str:
    """Everything that `import cuolr` gives."""
    parts = ["# Python", "All of these are names of `cuolr`; [examples](../python.md) show how they are used together."]
    homes: Mapping[str, str] = cuolr._HOMES
    classes = [name for name in sorted(homes) if inspect.isclass(getattr(cuolr, name))]
    functions = [name for name in sorted(homes) if name not in classes]
    for title, names in (("Classes", classes), ("Functions", functions)):
        parts.append(f"## {title}")
        parts += [f"::: {homes[name]}.{name}\n    options:\n      heading_level: 3" for name in names]
    return "\n\n".join(parts) + "\n"


def formats() -> str:
    """What is in the folders that commands write."""
    parts = ["# Files", "What commands write and read. All writes are atomic; nothing that is read is executed."]
    for title, module in FORMATS.items():
        parts += [f"## {title}", *_with_tables(inspect.cleandoc(importlib.import_module(module).__doc__ or ""))]
        if title == "A log":
            meanings = meanings_of_fields(ClickLog)
            rows = [f"| `{name}` | {REFERENCE.sub('', meanings[name])} |" for name in (*REQUIRED, "count", *OPTIONAL)]
            about = "Columns of `sessions.parquet`, with their shape over the M rows and the K positions of a list:"
            parts += [about, "\n".join(["| column | |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def _with_tables(docstring: str) -> Iterator[str]:
    """Its paragraphs, and its lines `name   meaning` as tables; without what refers to other modules."""
    text = REFERENCE.sub("", docstring)
    for is_table, lines in groupby(
        text.splitlines(), key=lambda line: bool(re.match(r"\s{9}|\s*\S+( \S+)*\s{2,}\S", line))
    ):
        if not is_table:
            yield "\n".join(lines)
            continue
        rows: list[list[str]] = []
        for line in lines:
            if found := re.fullmatch(r"\s{0,8}(\S+(?: \S+)*)\s{2,}(\S.*)", line):
                rows.append(list(found.groups()))
            else:
                rows[-1][1] += f" {line.strip()}"
        yield "\n".join(
            ["| | |", "|---|---|", *(f"| `{name}` | {meaning.replace('<', '&lt;')} |" for name, meaning in rows)]
        )


def dependencies() -> str:
    """The packages that each part needs, with the licences that they state."""
    rows = ["| part | package | version here | licence |", "|---|---|---|---|"]
    for requirement in map(Requirement, metadata.requires("cuolr") or []):
        extra = re.search(r'extra == "([^"]+)"', str(requirement.marker or ""))
        part = extra[1] if extra else "core"
        try:
            package = metadata.metadata(requirement.name)
        except metadata.PackageNotFoundError:
            continue  # for another system
        if part not in ("dev", "docs"):
            rows.append(f"| {part} | {package['Name']} | {package['Version']} | {_licence(package)} |")
    about = "Packages of the core and of the [extras](../index.md#installation)."
    return "\n\n".join(["# Dependencies", about, "\n".join(rows)]) + "\n"


def _licence(package: metadata.PackageMetadata) -> str:
    stated = package.get("License-Expression") or ""
    classifiers = [value.rpartition(" :: ")[2] for value in package.get_all("Classifier") or [] if "License" in value]
    return stated or ", ".join(classifiers) or (package.get("License") or "").strip().partition("\n")[0]
