"""The tutorials of the site: scripts (jupytext), run when the site is built, with their output."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient

FOLDER = "tutorials"
# Shows the scripts without running them, which takes a minute or two.
SKIP = "CUOLR_SKIP_TUTORIALS"
# Without a table of contents beside it, the page is as wide as most lines of code.
WIDE = "---\nhide: [toc]\n---\n"
# Output of so many lines is not a table.
SENTENCES = 3


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the tutorials after the start page."""
    scripts = sorted((Path(config.docs_dir) / FOLDER).glob("*.py"))
    config.nav.insert(1, {"Tutorials": [f"{FOLDER}/{script.stem}.md" for script in scripts]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each script."""
    for script in sorted((Path(config.docs_dir) / FOLDER).glob("*.py")):
        page = File.generated(config, f"{FOLDER}/{script.stem}.md", content=rendered(script, not os.environ.get(SKIP)))
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link to the page of a script instead of the script."""
    return re.sub(rf"({FOLDER}/[\w-]+)\.py\)", r"\1.md)", markdown)


def rendered(script: Path, run: bool) -> str:
    """The script as Markdown.

    Args:
        script: In jupytext's percent format.
        run: Whether to run it and show its output; an error in it raises.
    """
    notebook = jupytext.read(script)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    if run:
        NotebookClient(notebook, timeout=600, extra_arguments=["--IPKernelApp.log_level=ERROR"]).execute()
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts += [f"```python\n{cell.source}\n```", *_outputs(cell.outputs)]
    note = f"*This page is a script that runs: `docs/{FOLDER}/{script.name}`.*"
    return WIDE + "\n\n".join([*parts, note]) + "\n"


def _outputs(outputs: list[Any]) -> Iterator[str]:
    """What a cell printed and drew; messages on stderr are left out."""
    for output in outputs:
        data = output.get("data", {})
        if "image/png" in data:
            yield f"![Plot](data:image/png;base64,{''.join(data['image/png'].split())})"
        elif output.output_type == "stream" and output.name == "stdout":
            lines = output.text.rstrip().splitlines()
            # Sentences may be wider than the page; a table keeps its columns.
            style = "{ .text .wrapped }" if len(lines) <= SENTENCES else "text"
            yield "\n".join([f"```{style}", *lines, "```"])
