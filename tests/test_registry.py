import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cuolr.clicks.click_model import CLICK_MODELS
from cuolr.errors import InputError
from cuolr.logs.importing.importer import IMPORTERS
from cuolr.networks import ENCODERS
from cuolr.policies.policy import POLICIES
from cuolr.registry import Registry
from cuolr.training import LEARNERS


def test_a_name_can_be_taken_only_once() -> None:
    things: Registry[type] = Registry("thing", package=None)
    things.register("a")(int)
    with pytest.raises(ValueError, match="thing 'a' is already registered, as int"):
        things.register("a")(float)


def test_the_modules_of_a_package_register_themselves() -> None:
    assert {"pbm", "cascade", "dcm", "ccm", "ubm"} <= set(CLICK_MODELS.names())


@pytest.mark.parametrize("registry", [LEARNERS, ENCODERS, POLICIES, CLICK_MODELS, IMPORTERS])
def test_the_names_in_the_source_are_those_that_the_modules_register(registry: Registry[Any]) -> None:
    from_source = set(registry._modules_by_name())
    registry._load()
    assert from_source == {name for name, entry in registry._entries.items() if entry.__module__.startswith("cuolr.")}


@pytest.fixture
def animals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[type]]:
    """The registry of a package of two modules, one of which has a sub-package above it."""
    registry: Registry[type] = Registry("animal", package="zoo_of_test", variable="ANIMALS")
    (tmp_path / "zoo_of_test" / "cats").mkdir(parents=True)
    (tmp_path / "zoo_of_test" / "__init__.py").write_text("")
    (tmp_path / "zoo_of_test" / "cats" / "__init__.py").write_text("")
    (tmp_path / "zoo_of_test" / "cats" / "lion.py").write_text(
        'from zoo_of_test import ANIMALS\n\n@ANIMALS.register("lion")\nclass Lion: ...\n'
    )
    (tmp_path / "zoo_of_test" / "dog.py").write_text(
        "from zoo_of_test import ANIMALS, OTHERS\n\n"
        '@OTHERS.register("wolf")\n@ANIMALS.register("dog")\nclass Dog: ...\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    import zoo_of_test  # type: ignore[import-not-found]

    zoo_of_test.ANIMALS, zoo_of_test.OTHERS = registry, Registry("other", package=None)
    yield registry
    for name in [name for name in sys.modules if name.startswith("zoo_of_test")]:
        del sys.modules[name]


def test_listing_names_imports_no_module(animals: Registry[type]) -> None:
    assert animals.names() == ["dog", "lion"]
    assert "zoo_of_test.dog" not in sys.modules


def test_a_look_up_imports_only_the_module_that_registers_the_name(animals: Registry[type]) -> None:
    assert animals.get("lion").__name__ == "Lion"
    assert "zoo_of_test.cats.lion" in sys.modules
    assert "zoo_of_test.dog" not in sys.modules
    assert animals.name_of(animals.get("lion")) == "lion"


def test_an_unknown_name_is_answered_with_the_known_ones(animals: Registry[type]) -> None:
    with pytest.raises(InputError, match=r"unknown animal 'lino' \(did you mean 'lion'\?\); known: dog, lion"):
        animals.get("lino")
