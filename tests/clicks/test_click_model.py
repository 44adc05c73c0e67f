import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cuolr.clicks.ccm import ClickChainModel
from cuolr.clicks.click_model import (
    CLICK_MODELS,
    by_position,
    click_model_from,
    click_model_table,
    read_click_model,
    relevance_of,
)
from cuolr.clicks.dcm import DependentClickModel
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.errors import InputError

PAPER_NAMES = {
    "cascade": "CascadeModel",
    "ccm": "ClickChainModel",
    "dbn": "DynamicBayesianModel",
    "dcm": "DependentClickModel",
    "mixture": "MixtureModel",
    "pbm": "PositionBasedModel",
    "perfect": "PerfectModel",
    "sdbn": "SimplifiedDynamicBayesianModel",
    "trust": "TrustBiasModel",
    "ubm": "UserBrowsingModel",
}


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_relevance_of_small_integers_has_full_precision(dtype: type[np.signedinteger]) -> None:
    relevance = relevance_of(np.array([0, 1, 2, 3, 4], dtype), max_grade=4)
    assert relevance.dtype == np.float32
    assert relevance == pytest.approx([0, 1 / 15, 3 / 15, 7 / 15, 1], rel=1e-7)


def test_relevance_works_for_any_number_of_grades() -> None:
    assert relevance_of(np.array([0, 1]), max_grade=1) == pytest.approx([0, 1])
    assert relevance_of(np.array([0, 1, 2]), max_grade=2) == pytest.approx([0, 1 / 3, 1])
    assert relevance_of(np.array([0, 20]), max_grade=20) == pytest.approx([0, 1])


def test_a_scale_with_one_grade_has_no_relevance() -> None:
    assert relevance_of(np.array([0, 0]), max_grade=0) == pytest.approx([0, 0])


def test_parameters_of_short_lists_are_cut() -> None:
    assert by_position((0.5, 0.4, 0.3), np.zeros((2, 2))) == pytest.approx([0.5, 0.4])


def test_every_name_loads_the_class_that_it_names() -> None:
    loaded = {name: type(click_model_from({"name": name})).__name__ for name in CLICK_MODELS.names()}
    assert loaded == PAPER_NAMES


def test_the_click_chain_model_is_not_a_position_based_model_in_disguise() -> None:
    model = click_model_from({"name": "ccm"})
    assert type(model) is ClickChainModel
    ones = np.ones((1, 10), np.float32)
    # A user who clicks the perfect first document goes on with 0.25, and so forth.
    assert model.click_probability(ones, ones > 0)[0] == pytest.approx([0.25**k for k in range(10)])


def test_an_unknown_name_raises_with_the_known_ones_listed() -> None:
    with pytest.raises(InputError) as error:
        click_model_from({"name": "cccm"})
    assert str(error.value) == f"unknown click model 'cccm' (did you mean 'ccm'?); known: {', '.join(PAPER_NAMES)}"


@pytest.mark.parametrize("table", [{}, {"eta": 1.0}, {"name": 3}])
def test_a_table_without_a_name_raises_with_the_known_ones_listed(table: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"expected a 'name' \(one of cascade, ccm, .*\), found"):
        click_model_from(table)


def test_a_parameter_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown setting 'eta'; known: noise"):
        click_model_from({"name": "cascade", "eta": 1.0})


def test_a_parameter_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(InputError, match="setting 'eta': expected a number, found '1'"):
        click_model_from({"name": "pbm", "eta": "1"})


def test_a_table_changes_only_what_it_says() -> None:
    model = click_model_from({"name": "dcm", "eta": 2, "noise": 0})
    assert model == DependentClickModel(eta=2.0, noise=0.0)
    assert click_model_table(model) == {
        "name": "dcm",
        "noise": 0.0,
        "eta": 2.0,
        "continuation": [0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06],
    }


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_text('name = "pbm"\nexamination = [1, 0.5]\n')
    assert read_click_model(path) == PositionBasedModel(examination=(1.0, 0.5))


def test_all_problems_of_a_file_are_reported_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_text('name = "pbm"\nnoise = 2\neta = -1\nexamination = [1, 1.5, 0.5, -0.5]\n')
    with pytest.raises(InputError) as error:
        read_click_model(path)
    assert error.value.problems == [
        f"{path}: setting 'noise': expected 0 to 1, found 2.0",
        f"{path}: setting 'eta': expected a finite number >= 0, found -1.0",
        f"{path}: setting 'examination[1]': expected 0 to 1, found 1.5",
        f"{path}: setting 'examination[3]': expected 0 to 1, found -0.5",
    ]


def test_click_models_do_not_load_torch() -> None:
    program = (
        "import sys; from cuolr.clicks.click_model import CLICK_MODELS; "
        "CLICK_MODELS.names(); print('torch' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
