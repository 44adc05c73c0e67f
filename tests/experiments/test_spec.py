import pytest

from cuolr.errors import InputError
from cuolr.experiments.selection import select
from cuolr.experiments.spec import Cell
from cuolr.experiments.spec_file import parse_experiment, read_experiment
from tests.experiments.small import SMALL, small


def test_a_grid_is_every_method_under_every_click_model_and_reference_rankers_once() -> None:
    cells = small().cells(folds=[])
    learners = 4  # naive, IPW, and CQL with two weights
    assert len(cells) == 2 * (1 + 2 * learners)
    assert len([cell for cell in cells if cell.method == "LOGGING"]) == 2
    assert cells[0] == Cell("LOGGING", fold=0, seed=1, logging="ranksvm")
    assert cells[1] == Cell("naive", 0, 1, "ranksvm", "pbm", 10)


def test_folds_take_the_place_of_seeds() -> None:
    assert {(cell.fold, cell.seed) for cell in small().cells(folds=[1, 2, 3])} == {(1, 1), (2, 1), (3, 1)}


def test_a_sweep_is_a_method_for_each_value() -> None:
    experiment = small()
    assert [name for name in experiment.method if name.startswith("CQL")] == ["CQL 0", "CQL 0.1"]
    method = experiment.method["CQL 0.1"]
    assert (method.swept_from, method.swept_value) == ("CQL", 0.1)
    assert experiment.config_of(Cell("CQL 0.1")).learner_config.conservative_weight == 0.1  # type: ignore[union-attr]


def test_a_condition_takes_the_cells_that_it_names_and_the_reference_rankers() -> None:
    experiment = small()
    cells = experiment.cells(folds=[])
    chosen = select(cells, experiment, "click_model=pbm,seed=2")
    assert {cell.click_model for cell in chosen} == {"pbm", ""}
    assert {cell.seed for cell in chosen} == {2}
    assert {cell.method for cell in select(cells, experiment, "learner=cql")} == {"CQL 0", "CQL 0.1"}
    assert {cell.method for cell in select(cells, experiment, "method=naive,method=IPW")} == {"naive", "IPW"}
    assert {cell.method for cell in select(cells, experiment, "encoder=position")} == {"CQL 0", "CQL 0.1"}


def test_a_seed_of_0_is_a_seed() -> None:
    experiment = small(first_seed=0)
    cells = experiment.cells(folds=[])
    for seed in ("0", "1"):
        assert {str(cell.seed) for cell in select(cells, experiment, f"seed={seed}")} == {seed}


def test_a_condition_may_be_spelled_as_the_report_does() -> None:
    experiment = small()
    cells = experiment.cells(folds=[])
    assert select(cells, experiment, "click_model=PBM,method=ipw") == select(
        cells, experiment, "click_model=pbm,method=IPW"
    )


def test_by_default_the_baselines_are_told_by_their_learner() -> None:
    experiment = parse_experiment({"title": "mine", "grid": [{"method": ["logging", "naive", "dla", "cql"]}]})
    assert experiment.baselines == ("naive", "dla")
    chosen = parse_experiment(
        {"title": "mine", "grid": [{"method": ["naive", "dla", "cql"]}], "report": {"baselines": ["cql"]}}
    )
    assert chosen.baselines == ("cql",)


def test_a_name_with_commas_can_be_in_a_condition() -> None:
    experiment = read_experiment("candidates")
    cells = experiment.cells(folds=[])
    chosen = select(cells, experiment, "method=SAC, shown,seed=1, click_model=pbm")
    assert [(cell.method, cell.seed, cell.click_model) for cell in chosen] == [("SAC, shown", 1, "pbm")]
    experiment = read_experiment("robustness")
    chosen = select(experiment.cells(folds=[1]), experiment, "click_model=PBM, η = 2,learner=naive")
    assert [cell.click_model for cell in chosen] == ["PBM, η = 2"]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("pbm", "expected <name>"),
        ("model=pbm", "click_model"),
        ("seed=9", "9"),
        ("fold=1", "no cell of this experiment on this data has a fold"),
        ("encoder=position,method=naive", "no cell of the experiment meets"),
    ],
)
def test_a_condition_that_names_nothing_says_so(only: str, message: str) -> None:
    experiment = small()
    with pytest.raises(InputError, match=message):
        select(experiment.cells(folds=[]), experiment, only)


def test_every_learner_is_a_method_by_its_own_name() -> None:
    experiment = parse_experiment({**SMALL, "method": {}, "grid": [{"method": ["dla", "oracle"]}]})
    assert {cell.method for cell in experiment.cells([])} == {"dla", "oracle"}
