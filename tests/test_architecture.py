"""The wall: no learner can reach a relevance label, by whatever way it imports.

Imports are read from the source, followed from module to module, and checked once more in a running interpreter.
"""

import ast
import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import cuolr
from cuolr.learners.batch import SessionBatch
from cuolr.types import Candidates, ClickLog

PACKAGE = Path(cuolr.__file__).parent

# What learns, and what feeds and drives it.
WALLED = re.compile(r"cuolr\.((learners|encoders|presets)(\..+)?|training|fitting|checkpoints|run_folder)")
# What reads, makes or measures by labels.
LABELLED = re.compile(
    r"cuolr\.(clicks|commands|experiments)(\..+)?"
    r"|cuolr\.(cli|estimator|evaluation|measures|oracle|propensity|ranksvm|trec)"
    r"|cuolr\.data\.(cache|catalog|feature_file|letor|letor_rows|statistics|synthetic)"
)
LABELLED_NAMES = {"RankingDataset"}
# How a module could be reached that no import names; and where a log says which click model made it.
FORBIDDEN_NAMES = {"import_module", "importlib", "__import__", "exec", "eval", "read_meta", "META_FILE"}
LABEL_WORDS = re.compile(r"relevan|label|grade|rating|judg|target|truth|oracle|meta|click_model|source", re.IGNORECASE)

Sources = Mapping[str, str]


def project_sources() -> dict[str, str]:
    """The source of each module by its name."""
    sources = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("cuolr", *path.relative_to(PACKAGE).with_suffix("").parts)
        sources[".".join(parts).removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return sources


@cache
def nodes_of(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def imports_of(module: str, sources: Sources) -> Iterator[str]:
    """All that a module imports, at any place in it: modules, and names as `module.name`."""
    is_package = any(other.startswith(f"{module}.") for other in sources)
    package = module if is_package else module.rpartition(".")[0]
    for node in nodes_of(sources[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            home = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{home}.{alias.name}" for alias in node.names)


def modules_reached(module: str, sources: Sources) -> dict[str, tuple[str, ...]]:
    """Every module of the project that importing `module` can load, with the way that leads to it.

    The root package is not followed: it imports a name only when asked for it, which `violations` looks at.
    """
    ways: dict[str, tuple[str, ...]] = {module: (module,)}
    to_visit = [module]
    while to_visit:
        here = to_visit.pop()
        for name in imports_of(here, sources):
            found = name if name in sources else name.rpartition(".")[0]
            if found in sources and found != "cuolr" and found not in ways:
                ways[found] = (*ways[here], found)
                to_visit.append(found)
    return ways


@cache
def names_in(source: str) -> set[str]:
    """Every identifier that a module uses, however it comes by it."""
    names = set()
    for node in nodes_of(source):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names |= set(node.name.split("."))
    return names


@cache
def lazy_names_in(source: str) -> set[str]:
    """What a module asks the root package for, as in `cuolr.evaluate` or `from cuolr import evaluate`."""
    names = set()
    for node in nodes_of(source):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cuolr":
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and node.module == "cuolr":
            names |= {alias.name for alias in node.names}
    return names - {"__version__"}


def violations(sources: Sources) -> list[str]:
    """One line for each way through the wall."""
    found = []
    for root in filter(WALLED.fullmatch, sources):
        for module, way in modules_reached(root, sources).items():
            path = " → ".join(way)
            if LABELLED.fullmatch(module):
                found.append(f"{path}: a module that knows labels")
            if module != "cuolr.types" and names_in(sources[module]) & LABELLED_NAMES:
                found.append(f"{path}: uses {names_in(sources[module]) & LABELLED_NAMES}")
            lazy = lazy_names_in(sources[module])
            if any(f"cuolr.{name}" not in sources for name in lazy):
                found.append(f"{path}: asks the root package for {lazy}")
        if names_in(sources[root]) & FORBIDDEN_NAMES:
            found.append(f"{root}: uses {names_in(sources[root]) & FORBIDDEN_NAMES}")
    return found


def test_no_learner_can_reach_a_label() -> None:
    assert violations(project_sources()) == []


def test_the_wall_stands_before_all_that_learns() -> None:
    walled = set(filter(WALLED.fullmatch, project_sources()))
    assert {"cuolr.learners.base", "cuolr.learners.cql", "cuolr.encoders.attention", "cuolr.training"} <= walled
    assert {"cuolr.learners.batches", "cuolr.fitting", "cuolr.presets"} <= walled


def test_all_that_uses_labels_is_known_as_such() -> None:
    sources = project_sources()
    users = {module for module, source in sources.items() if names_in(source) & LABELLED_NAMES}
    assert [module for module in users - {"cuolr", "cuolr.types"} if not LABELLED.fullmatch(module)] == []


@pytest.mark.parametrize(
    ("source", "others"),
    [
        ("from cuolr.types import RankingDataset", {}),
        ("from cuolr.types import RankingDataset as Innocent", {}),
        ("import cuolr.types as t\nx = t.RankingDataset", {}),
        ("from cuolr import types\nx = types.RankingDataset", {}),
        ("from ..types import RankingDataset", {}),
        ("from ..data.letor import read_letor", {}),
        ("from ..data import letor", {}),
        ("def update():\n    from cuolr.data.letor import read_letor", {}),
        ("import cuolr.measures", {}),
        ("from cuolr import measures", {}),
        ("import cuolr\nx = cuolr.evaluate", {}),
        ("from cuolr import read_letor", {}),
        ("import importlib\nimportlib.import_module('cuolr.measures')", {}),
        ("__import__('cuolr.oracle')", {}),
        ("from cuolr.data.clicklog import read_meta", {}),
        ("from cuolr.friendly import peek", {"cuolr.friendly": "from cuolr.farther import peek"}),
        ("from cuolr.friendly import peek", {"cuolr.friendly": "import cuolr\npeek = cuolr.read_letor"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from cuolr.oracle import fit", {}),
    ],
)
def test_a_way_through_the_wall_is_found(source: str, others: dict[str, str]) -> None:
    farther = {"cuolr.farther": "from cuolr.clicks.simulate import Simulation as peek"}
    sources = project_sources() | farther | others | {"cuolr.learners.cheat": source}
    assert any(line.startswith("cuolr.learners.cheat") for line in violations(sources))


def test_a_module_that_keeps_to_its_side_is_let_through() -> None:
    source = "from cuolr.types import ClickLog\nfrom cuolr.data.normalise import Normaliser\nimport torch, cuolr\n"
    sources = project_sources() | {"cuolr.learners.honest": source + "x = cuolr.__version__"}
    assert violations(sources) == []


@pytest.mark.parametrize("kind", [SessionBatch, ClickLog, Candidates])
def test_what_a_learner_gets_has_no_field_for_labels(kind: type) -> None:
    assert [field.name for field in dataclasses.fields(kind) if LABEL_WORDS.search(field.name)] == []


def test_the_check_of_fields_would_notice_one() -> None:
    for name in ("relevance", "true_label", "grades", "meta", "click_model"):
        assert LABEL_WORDS.search(name)


def test_loading_every_learner_loads_nothing_that_knows_labels() -> None:
    program = (
        "import sys, cuolr.fitting\n"
        "from cuolr.encoders.base import ENCODERS\n"
        "from cuolr.learners.base import LEARNERS\n"
        "assert LEARNERS.names() and ENCODERS.names()\n"
        "print(*(name for name in sys.modules if name.startswith('cuolr')))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "cuolr.learners.sac" in loaded
    assert [name for name in loaded if LABELLED.fullmatch(name)] == []


def test_importing_the_package_or_the_command_line_does_not_load_torch() -> None:
    program = "import sys, cuolr, cuolr.cli; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_all_that_the_package_exports_is_there() -> None:
    assert [name for name in cuolr.__all__ if not hasattr(cuolr, name)] == []
    assert set(cuolr.__all__) <= set(dir(cuolr))
    with pytest.raises(AttributeError, match="no attribute 'Rankre'"):
        _ = cuolr.Rankre
