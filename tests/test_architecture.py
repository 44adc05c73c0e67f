"""The house: which room may use which, and the wall, behind which no learner can reach a relevance label.

Imports are read from the source, followed from module to module, and checked once more in a running interpreter.
"""

import ast
import dataclasses
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import cuolr
from cuolr.logs.clicklog import ClickLog
from cuolr.training.batches import SessionBatch
from cuolr.types import Candidates

PACKAGE = Path(cuolr.__file__).parent
ROOT = Path(__file__).resolve().parents[1]

# What every room stands on; it imports nothing from a room.
GROUND_FLOOR = {"types", "errors", "config", "registry", "files", "random", "progress", "output_lock", "glossary"}
# What learns, and what drives it; from the logs it may reach what reads no labels.
WALLED_ROOMS = {"networks", "policies", "examination", "training", "learners", "distillation"}
# What reads labels, makes clicks of them, or measures by them.
LABELLED_ROOMS = {"clicks", "evaluation", "supervised", "experiments", "cli", "estimator", "data.letor"}
# A module that names it reads labels, in whichever room it is.
LABELLED_NAME = "RankingDataset"
# How a module could be reached that no import names; and where a log says which click model made it.
FORBIDDEN_NAMES = {"import_module", "importlib", "__import__", "exec", "eval", "read_meta", "META_FILE"}
LABEL_WORDS = re.compile(r"relevan|label|grade|rating|judg|target|truth|oracle|meta|click_model|source", re.IGNORECASE)

Sources = Mapping[str, str]


@cache
def project_sources() -> dict[str, str]:
    """The source of each module by its name."""
    sources = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("cuolr", *path.relative_to(PACKAGE).with_suffix("").parts)
        sources[".".join(parts).removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return sources


def room_of(module: str) -> str:
    """The first name after `cuolr`; "" for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def is_in(module: str, rooms: set[str]) -> bool:
    return any(f"{module}.".startswith(f"cuolr.{room}.") for room in rooms)


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


def modules_imported(module: str, sources: Sources) -> set[str]:
    """The modules of the project that a module imports."""
    found = {name if name in sources else name.rpartition(".")[0] for name in imports_of(module, sources)}
    return found & sources.keys() - {"cuolr"}


def modules_reached(module: str, sources: Sources) -> dict[str, tuple[str, ...]]:
    """Every module of the project that importing `module` can load, with the way that leads to it.

    The root package is not followed: it imports a name only when asked for it, which `violations` looks at.
    """
    ways: dict[str, tuple[str, ...]] = {module: (module,)}
    to_visit = [module]
    while to_visit:
        here = to_visit.pop()
        for found in modules_imported(here, sources) - ways.keys():
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


def violations(sources: Sources, roots: Iterable[str] | None = None) -> list[str]:
    """One line for each way through the wall that starts at one of these modules; by default at all that learns."""
    found = []
    for root in (module for module in sources if is_in(module, WALLED_ROOMS)) if roots is None else roots:
        for module, way in modules_reached(root, sources).items():
            path = " → ".join(way)
            if is_in(module, LABELLED_ROOMS):
                found.append(f"{path}: a module of a room that knows labels")
            if module != "cuolr.types" and LABELLED_NAME in names_in(sources[module]):
                found.append(f"{path}: uses {LABELLED_NAME}")
            lazy = lazy_names_in(sources[module])
            if any(f"cuolr.{name}" not in sources for name in lazy):
                found.append(f"{path}: asks the root package for {lazy}")
        if names_in(sources[root]) & FORBIDDEN_NAMES:
            found.append(f"{root}: uses {names_in(sources[root]) & FORBIDDEN_NAMES}")
    return found


def rooms_used(sources: Sources) -> dict[str, set[str]]:
    """The rooms that each room imports from."""
    used: dict[str, set[str]] = {}
    for module in sources:
        here = room_of(module)
        used.setdefault(here, set()).update(room_of(name) for name in modules_imported(module, sources))
        used[here].discard(here)
    return used


@pytest.mark.thorough
def test_the_ground_floor_imports_no_room() -> None:
    used = rooms_used(project_sources())
    assert {floor: used[floor] - GROUND_FLOOR for floor in GROUND_FLOOR} == {floor: set() for floor in GROUND_FLOOR}


def test_no_two_rooms_import_each_other_by_any_way() -> None:
    order = list(TopologicalSorter(rooms_used(project_sources())).static_order())
    assert order.index("data") < order.index("logs") < order.index("policies") < order.index("training")
    assert order.index("training") < order.index("learners") < order.index("cli")


def repeated_names(sources: Sources) -> list[str]:
    """Names of several modules or public classes.

    A module of `cli` is named after its verb, as the module of the library that does the work may be (decision 7). No
    two modules of `cli`, and no class there, share a name.
    """
    in_cli = {module for module in sources if room_of(module) == "cli"}
    library, verbs = (
        Counter(module.rpartition(".")[2] for module in modules) for modules in (sources.keys() - in_cli, in_cli)
    )
    classes = Counter(
        node.name
        for source in sources.values()
        for node in nodes_of(source)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return [name for counts in (library + classes, verbs + classes) for name, times in counts.items() if times > 1]


def test_no_two_modules_or_classes_have_one_name() -> None:
    assert repeated_names(project_sources()) == []


def test_a_repeated_name_is_noticed() -> None:
    sources = project_sources()
    assert repeated_names(sources | {"cuolr.cli.cql": ""}) == []
    for module, source, repeated in (
        ("cuolr.policies.cql", "", "cql"),
        ("cuolr.cli.more.train", "", "train"),
        ("cuolr.cli.other", "class ClickLog:\n    pass", "ClickLog"),
    ):
        assert repeated in repeated_names(sources | {module: source})


@pytest.mark.thorough
def test_no_learner_can_reach_a_label() -> None:
    assert violations(project_sources()) == []


def test_the_wall_stands_before_all_that_learns() -> None:
    walled = {module for module in project_sources() if is_in(module, WALLED_ROOMS)}
    assert {"cuolr.learners.rl.cql", "cuolr.networks.attention", "cuolr.training.loop"} <= walled


@pytest.mark.parametrize(
    ("source", "others"),
    [
        ("from cuolr.types import RankingDataset", {}),
        ("from cuolr.types import RankingDataset as Innocent", {}),
        ("import cuolr.types as t\nx = t.RankingDataset", {}),
        ("from cuolr import types\nx = types.RankingDataset", {}),
        ("from ..types import RankingDataset", {}),
        ("from ..data.letor.reader import read_letor", {}),
        ("from ..data.letor import reader", {}),
        ("from ..data import synthetic", {}),
        ("def update():\n    from cuolr.data.letor.reader import read_letor", {}),
        ("import cuolr.evaluation.measures", {}),
        ("from cuolr.evaluation import measures", {}),
        ("import cuolr\nx = cuolr.evaluate", {}),
        ("from cuolr import read_letor", {}),
        ("import importlib\nimportlib.import_module('cuolr.evaluation.measures')", {}),
        ("__import__('cuolr.supervised.oracle')", {}),
        ("from cuolr.logs.log_folder import read_meta", {}),
        ("from cuolr.friendly import peek", {"cuolr.friendly": "from cuolr.farther import peek"}),
        ("from cuolr.friendly import peek", {"cuolr.friendly": "import cuolr\npeek = cuolr.read_letor"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from cuolr.supervised.oracle import fit", {}),
    ],
)
def test_a_way_through_the_wall_is_found(source: str, others: dict[str, str]) -> None:
    farther = {"cuolr.farther": "from cuolr.clicks.simulate import Simulation as peek"}
    sources = project_sources() | farther | others | {"cuolr.learners.cheat": source}
    assert violations(sources, ["cuolr.learners.cheat"])


def test_a_module_that_keeps_to_its_side_is_let_through() -> None:
    source = (
        "from cuolr.logs.clicklog import ClickLog\nfrom cuolr.data.normalise import Normaliser\nimport torch, cuolr\n"
    )
    sources = project_sources() | {"cuolr.learners.honest": source + "x = cuolr.__version__"}
    assert violations(sources, ["cuolr.learners.honest"]) == []


@pytest.mark.parametrize("kind", [SessionBatch, ClickLog, Candidates])
def test_what_a_learner_gets_has_no_field_for_labels(kind: type) -> None:
    assert [field.name for field in dataclasses.fields(kind) if LABEL_WORDS.search(field.name)] == []


def test_the_check_of_fields_would_notice_one() -> None:
    for name in ("relevance", "true_label", "grades", "meta", "click_model"):
        assert LABEL_WORDS.search(name)


def test_loading_every_learner_loads_nothing_that_knows_labels() -> None:
    program = (
        "import sys, cuolr.training.fit\n"
        "from cuolr.networks.encoder import ENCODERS\n"
        "from cuolr.training.base_learner import LEARNERS\n"
        "assert [kind.get(name) for kind in (LEARNERS, ENCODERS) for name in kind.names()]\n"
        "print(*(name for name in sys.modules if name.startswith('cuolr')))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "cuolr.learners.rl.sac" in loaded
    assert [name for name in loaded if is_in(name, LABELLED_ROOMS)] == []


def test_importing_the_package_or_the_command_line_does_not_load_torch() -> None:
    program = "import sys, cuolr, cuolr.cli.main; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_the_lowest_versions_are_those_that_the_project_allows() -> None:
    """`constraints-lowest.txt` belongs to the bounds of pyproject.toml; torch has one tested version only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    of_extras = [line for extra in ("export", "report", "serve") for line in project["optional-dependencies"][extra]]
    for requirement in [*project["dependencies"], *of_extras]:
        name, bound = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,.*)?", requirement).groups()  # type: ignore[union-attr]
        if name != "torch":
            assert f"{lowest[name]}.".startswith(f"{bound}."), requirement


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-lowest.txt"])
def test_constraints_name_no_build_that_only_one_index_has(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#") and "+" in line] == []


def test_all_that_the_package_exports_is_there() -> None:
    assert [name for name in cuolr.__all__ if not hasattr(cuolr, name)] == []
    assert set(cuolr.__all__) <= set(dir(cuolr))
    with pytest.raises(AttributeError, match="no attribute 'Rankre'"):
        _ = cuolr.Rankre


def test_no_module_needs_a_posix_system_to_be_imported() -> None:
    posix = re.compile(r"^(?:import|from) (?:fcntl|grp|posix|pty|pwd|resource|termios|tty)\b", re.MULTILINE)
    assert [name for name, source in project_sources().items() if posix.search(source)] == []


def test_a_module_is_short_enough_to_be_read_at_once() -> None:
    lines = {name: len(source.splitlines()) for name, source in project_sources().items()}
    assert {name: number for name, number in lines.items() if number > 300} == {}
