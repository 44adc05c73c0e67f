import pytest

from cuolr.registry import Registry


def test_a_name_can_be_taken_only_once() -> None:
    things: Registry[type] = Registry("thing", package=None)
    things.register("a")(int)
    with pytest.raises(ValueError, match="thing 'a' is already registered, as int"):
        things.register("a")(float)


def test_the_modules_of_a_package_register_themselves() -> None:
    from cuolr.clicks.click_model import CLICK_MODELS

    assert {"pbm", "cascade", "dcm", "ccm", "ubm"} <= set(CLICK_MODELS.names())
