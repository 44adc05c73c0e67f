import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.randomisation import randomise
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.plot import PLOT_SUFFIXES, at_distance, plot_examination
from cuolr.examination.propensities import (
    Estimate,
    Propensities,
    known_values,
    propensities_of_log,
    read_propensities,
    save_propensities,
)
from cuolr.files import unverified
from cuolr.json_files import MAX_JSON_BYTES
from cuolr.logs.log_folder import write_click_log
from cuolr.training.base_learner import LEARNERS
from tests.data.small_data import dataset_of, full_log
from tests.small_log import small_log
from tests.test_architecture import names_in, project_sources


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
        (
            {"examination": [1], "continuaton": [0.5]},
            "unknown key 'continuaton'; known: format, lists, examination, con",
        ),
        ({"continuation": {"mel": [0.5]}}, "unknown key 'continuation.mel'; known: mle, paper, given"),
        (
            {"examination": {"values": [1], "errors": [0]}},
            "unknown key 'examination.errors'; known: values, standard_er",
        ),
        ({"examinations": [1]}, "expected an object with 'examination', 'continuation' or both"),
        ({"continuation": {}}, "expected an object with 'examination', 'continuation' or both"),
        ({"format": "cuolr-propensity-9", "examination": [1]}, "format 'cuolr-propensity-9' needs a newer cuolr"),
        ({"examination": []}, "examination: expected a number for each position, found none"),
        ({"examination": 1}, "examination: expected a list of numbers, found 1"),
        ({"examination": [1, -0.5]}, "examination, position 2: expected a number from 0 up, found -0.5"),
        ({"examination": [1, "0.5"]}, "examination, position 2: expected a number from 0 up, found '0.5'"),
        ({"examination": [1, True]}, "examination, position 2: expected a number from 0 up, found True"),
        ({"examination": [1, float("nan")]}, "examination, position 2: expected a number from 0 up, found nan"),
        ({"examination": [1, float("inf")]}, "examination, position 2: expected a number from 0 up, found inf"),
        ({"examination": [1, 10**400]}, "examination, position 2: expected a number from 0 up, found 1000"),
        ({"continuation": [0.5, 1.5]}, "continuation, position 2: expected a number from 0 to 1, found 1.5"),
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


@pytest.mark.parametrize("name", ["examination", "continuation"])
def test_nothing_in_the_place_of_numbers_is_one_line(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, {name: None})
    with pytest.raises(InputError) as raised:
        read_propensities(file)
    assert raised.value.problems == [f"{file}: {name}: expected a list of numbers, found None"]


def test_a_file_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    for depth in (50, 200_000):
        (tmp_path / "deep.json").write_text('{"examination": ' + "[" * depth + "]" * depth + "}")
        with pytest.raises(
            InputError, match=r"deep\.json: (not valid JSON|examination, position 1: expected a number)"
        ):
            read_propensities(tmp_path / "deep.json")


def test_a_file_may_leave_open_the_examination_of_the_first_position(tmp_path: Path) -> None:
    """Few random lists may have no click there; `cm-ipw` does not need it."""
    found = read_propensities(written(tmp_path, {"examination": [None, None], "continuation": [0.5]}))
    assert found == Propensities(Estimate((None, None)), {"given": Estimate((0.5,))})


def test_the_folder_of_the_file_is_made(tmp_path: Path) -> None:
    save_propensities(Propensities(Estimate((1.0,))), tmp_path / "a" / "b" / "own.json")
    assert read_propensities(tmp_path / "a" / "b" / "own.json").examination == Estimate((1.0,))


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    file = written(tmp_path, {"examination": [1, -1, "x"], "continuation": [2]})
    with pytest.raises(InputError) as raised:
        read_propensities(file)
    assert len(raised.value.problems) == 3


def test_what_is_no_json_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"examination": [1,')
    with pytest.raises(InputError, match=r"broken\.json: not valid JSON"):
        read_propensities(tmp_path / "broken.json")
    with pytest.raises(InputError, match=r"nothing\.json: file not found; .* continuation by position"):
        read_propensities(tmp_path / "nothing.json")


def test_a_pipe_and_a_file_that_is_too_large_for_memory_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "large.json").write_text("{}")
    os.truncate(tmp_path / "large.json", MAX_JSON_BYTES + 1)
    for name, problem in {"pipe": "expected a file, found a folder or a device", "large": "expected at most"}.items():
        with pytest.raises(InputError, match=f"{name}.json: {problem}"):
            read_propensities(tmp_path / f"{name}.json")


def test_positions_that_are_needed_must_be_known() -> None:
    estimate = Estimate((1.0, None, 0.5))
    np.testing.assert_array_equal(known_values(estimate, 1, "examination"), [1.0])
    with pytest.raises(InputError, match="examination is needed for 4 positions, but unknown for position 2, 4"):
        known_values(estimate, 4, "examination")


def test_only_learners_that_take_propensities_use_them_and_none_reads_the_file() -> None:
    taking = {name for name in LEARNERS.names() if LEARNERS.get(name).takes_propensities}
    assert taking == {"ipw", "cm-ipw", "doubly-robust"}
    sources = {name: source for name, source in project_sources().items() if name.startswith("cuolr.learners.")}
    using = {module for module, source in sources.items() if "propensities" in names_in(source)}
    assert using == {f"cuolr.learners.counterfactual.{name}" for name in ("ipw", "cm_ipw", "doubly_robust")}
    readers = {"read_propensities", "PROPENSITY_FILE"}
    assert [module for module, source in sources.items() if names_in(source) & readers] == []


def test_propensities_of_a_log_are_compared_with_their_hash_if_they_were_written_with_it(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "propensity.json").write_text('{"examination": [1, 0.5]}')

    write_click_log(tmp_path / "with", [full_log()], more=write)
    write_click_log(tmp_path / "later", [full_log()])
    write(tmp_path / "later")
    for name in ("with", "later"):
        assert propensities_of_log(tmp_path / name) is not None
        (tmp_path / name / "propensity.json").write_text('{"examination": [1, 0.75]}')
    assert propensities_of_log(tmp_path / "later") is not None
    with pytest.raises(InputError, match=r"propensity\.json: damaged: it does not match its hash"):
        propensities_of_log(tmp_path / "with")
    with unverified():
        assert propensities_of_log(tmp_path / "with") is not None


@pytest.mark.thorough
@pytest.mark.parametrize("suffix", PLOT_SUFFIXES)
def test_the_same_table_gives_the_same_file(suffix: str, tmp_path: Path) -> None:
    table = ExaminationModel.fit(small_log(rows=100)).probabilities()
    files = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]
    for file in files:
        plot_examination(table, file, truth=np.ones(table.shape))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(files[0].read_bytes()) > 1_000


def test_a_plot_has_a_line_for_no_click_above_and_for_each_distance_that_occurs(tmp_path: Path) -> None:
    table = np.full((3, 4), np.nan)
    table[:, 0] = [1.0, 0.8, 0.6]
    plot_examination(table, tmp_path / "plot.svg")
    without_clicks = (tmp_path / "plot.svg").read_text()
    assert "no click above" in without_clicks
    assert "below the last click" not in without_clicks
    table[2, 1] = 0.3
    plot_examination(table, tmp_path / "plot.svg")
    assert "<!-- 2 below the last click -->" in (tmp_path / "plot.svg").read_text()


def test_the_distance_to_the_last_click_is_counted_from_the_position() -> None:
    """table[k, j] = 10 k + j with k and j from 1, so that at distance d it is 10 k + (k − d)."""
    table = np.array([[10.0 * k + j for j in range(5)] for k in range(1, 5)])
    np.testing.assert_array_equal(at_distance(table, 0), [10, 20, 30, 40])
    np.testing.assert_array_equal(at_distance(table, 1), [np.nan, 21, 32, 43])
    np.testing.assert_array_equal(at_distance(table, 3), [np.nan, np.nan, np.nan, 41])
