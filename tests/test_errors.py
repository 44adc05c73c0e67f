import pickle

import pytest

from cuolr.config import SettingError
from cuolr.errors import InputError, load_extra, problems_in


def test_bad_input_is_a_value_error_as_callers_in_python_expect() -> None:
    with pytest.raises(ValueError, match=r"^a\nb$"):
        raise InputError(["a", "b"])


@pytest.mark.parametrize("error", [InputError(["a", "b"]), SettingError({"rate": "expected 0 to 1, found 2"})])
def test_an_error_comes_whole_out_of_a_worker_process(error: InputError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.problems) == (type(error), error.problems)


def test_each_problem_is_told_with_its_place() -> None:
    with pytest.raises(InputError) as caught, problems_in("log.csv"):
        raise InputError(["row 1: bad", "row 2: worse"])
    assert caught.value.problems == ["log.csv: row 1: bad", "log.csv: row 2: worse"]


def test_a_package_of_an_extra_is_loaded_or_named_with_how_to_install_it() -> None:
    assert load_extra("json", "report", "JSON is not installed").loads("1") == 1
    with pytest.raises(InputError, match=r"^Nope is missing; install it with: pip install 'cuolr\[report\]'$"):
        load_extra("no_such_package_here", "report", "Nope is missing")
