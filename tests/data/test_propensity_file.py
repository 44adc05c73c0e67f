import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.data.propensity_file import Estimate, Propensities, known_values, read_propensities, save_propensities
from cuolr.errors import InputError
from cuolr.propensity import randomise
from tests.data.small_data import dataset_of
from tests.test_architecture import modules_reached, project_sources


def written(tmp_path: Path, content: Any) -> Path:
    file = tmp_path / "propensity.json"
    file.write_text(json.dumps(content))
    return file


def test_estimates_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = randomise(dataset_of(12, 3, 30), PositionBasedModel(), 1_000)
    save_propensities(found, tmp_path / "propensity.json")
    assert read_propensities(tmp_path / "propensity.json") == found


def test_values_of_ones_own_are_lists(tmp_path: Path) -> None:
    own = {"examination": [1, 0.9, 0.5], "continuation": [0.7, 0.6, None]}
    assert read_propensities(written(tmp_path, own)) == Propensities(
        Estimate((1.0, 0.9, 0.5)), {"given": Estimate((0.7, 0.6, None))}, lists=0
    )
    assert read_propensities(written(tmp_path, {"continuation": [0.5]})).examination is None
    assert read_propensities(written(tmp_path, {"examination": [1]})).continuation == {}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "expected an object with 'examination', 'continuation' or both"),
        ({"examinations": [1]}, "expected an object with 'examination', 'continuation' or both"),
        ({"continuation": {}}, "expected an object with 'examination', 'continuation' or both"),
        ({"format": "cuolr-propensity-9", "examination": [1]}, "expected format 'cuolr-propensity-1'"),
        ({"examination": []}, "examination: expected a number for each position, found none"),
        ({"examination": 1}, "examination: expected a list of numbers, found 1"),
        ({"examination": [1, -0.5]}, "examination, position 2: expected a number from 0 up, found -0.5"),
        ({"examination": [1, "0.5"]}, "examination, position 2: expected a number from 0 up, found '0.5'"),
        ({"examination": [1, True]}, "examination, position 2: expected a number from 0 up, found True"),
        ({"examination": [1, float("nan")]}, "examination, position 2: expected a number from 0 up, found nan"),
        ({"examination": [0, 1]}, "examination, position 1: the others are relative to it"),
        ({"examination": [None, 1]}, "examination, position 1: the others are relative to it"),
        ({"continuation": [0.5, 1.5]}, "continuation.given, position 2: expected a number from 0 to 1, found 1.5"),
        ({"continuation": {"mle": {"value": [1]}}}, "continuation.mle: expected a list of numbers, found None"),
        (
            {"examination": {"values": [1, 0.5], "standard_errors": [0]}},
            "examination.standard_errors: expected 2 numbers, found 1",
        ),
        ({"examination": [1], "lists": -3}, "lists: expected a whole number, found -3"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, content: Any, problem: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(InputError) as raised:
        read_propensities(file)
    assert any(line.startswith(f"{file}: {problem}") for line in raised.value.problems), raised.value.problems


def test_all_problems_are_told_together(tmp_path: Path) -> None:
    file = written(tmp_path, {"examination": [1, -1, "x"], "continuation": [2]})
    with pytest.raises(InputError) as raised:
        read_propensities(file)
    assert len(raised.value.problems) == 3


def test_what_is_no_json_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"examination": [1,')
    with pytest.raises(InputError, match=r"broken\.json: not valid JSON"):
        read_propensities(tmp_path / "broken.json")
    with pytest.raises(InputError, match=r"nothing\.json: cannot be read \(No such file or directory\)"):
        read_propensities(tmp_path / "nothing.json")


def test_positions_that_are_needed_must_be_known() -> None:
    estimate = Estimate((1.0, None, 0.5))
    np.testing.assert_array_equal(known_values(estimate, 1, "examination"), [1.0])
    with pytest.raises(InputError, match="examination is needed for 4 positions, but not known for position 2, 4"):
        known_values(estimate, 4, "examination")


def test_only_the_two_learners_that_weight_by_it_can_open_the_file() -> None:
    sources = project_sources()
    learners = {module for module in sources if module.startswith("cuolr.learners.")}
    openers = {module for module in learners if "cuolr.data.propensity_file" in modules_reached(module, sources)}
    assert openers == {"cuolr.learners.ipw", "cuolr.learners.cm_ipw"}
    names = {
        module for module in learners if "propensity.json" in sources[module] or "PROPENSITY_FILE" in sources[module]
    }
    assert names == set()
