import tomllib
from pathlib import Path
from typing import Any, Literal

import pytest

from cuolr.errors import InputError
from cuolr.experiments.results_folder import ResultsFolder, read_results
from cuolr.experiments.spec_file import parse_experiment
from cuolr.experiments.tune import best_toml, exhausted, search_spaces, trials_of, tuning
from cuolr.experiments.tuning_settings import Search
from cuolr.training.presets.configure import configure
from tests.experiments.small import SMALL, run_small, small

SPACE: dict[str, Any] = {
    "naive": {"learner.learning_rate": [1e-4, 1e-2], "training.batch_size": [4, 8]},
    "dla": {"learner.learning_rate": [1e-3]},
}


def test_every_learner_has_its_trials_and_the_first_is_the_preset() -> None:
    experiment = tuning(["naive", "dla"], SPACE, Search(3), small())
    assert list(experiment.method) == [
        "naive, trial 1",
        "naive, trial 2",
        "naive, trial 3",
        "dla, trial 1",
        "dla, trial 2",
    ]
    assert experiment.method["naive, trial 1"].settings == {}
    tried = [experiment.method[f"naive, trial {number}"].settings for number in (2, 3)]
    assert tried[0] != tried[1]
    assert all(settings["learner.learning_rate"] in (1e-4, 1e-2) for settings in tried)


@pytest.mark.parametrize("search", ["random", "grid"])
def test_a_combination_that_is_the_preset_is_not_tried_again(search: Literal["random", "grid"]) -> None:
    base = small()
    preset = configure("naive").as_dict()["learner"]["learning_rate"]
    other = {"learner.learning_rate": preset / 10, "training.batch_size": base.training["batch_size"]}
    space = {"naive": {name: [value] for name, value in other.items()}}
    space["naive"]["learner.learning_rate"].append(preset)
    experiment = tuning(["naive"], space, Search(3, search), base)
    assert [method.settings for method in experiment.method.values()] == [{}, other]


def test_the_same_seed_tries_the_same() -> None:
    one, same, other = (tuning(["naive"], SPACE, Search(3, seed=seed), small()) for seed in (1, 1, 3))
    assert one == same
    assert one != other


def test_a_grid_is_all_combinations_or_an_error() -> None:
    experiment = tuning(["naive"], SPACE, Search(5, "grid"), small())
    assert len(experiment.method) == 1 + 4
    with pytest.raises(InputError, match="the preset are 5 trials"):
        tuning(["naive"], SPACE, Search(4, "grid"), small())


def test_a_space_with_fewer_combinations_than_trials_is_told() -> None:
    search = Search(3)
    assert list(exhausted(tuning(["naive", "dla"], SPACE, search, small()), search)) == [
        "dla: only 2 trials, because its search space has no more combinations"
    ]


def test_a_learner_without_a_space_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown learner to tune 'naiv' \(did you mean 'naive'\?\)"):
        tuning(["naiv"], SPACE, Search(3), small())


def test_spaces_can_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "spaces.toml").write_text('[naive]\n"learner.learning_rate" = [1e-4, 1e-2]\n')
    assert search_spaces(tmp_path / "spaces.toml") == {"naive": {"learner.learning_rate": [1e-4, 1e-2]}}


def test_nothing_to_tune_is_an_error() -> None:
    with pytest.raises(InputError, match="one or more of dla, naive"):
        tuning([], SPACE, Search(4), small())


def test_the_best_trial_is_the_one_with_the_best_mean_over_all_runs(tmp_path: Path) -> None:
    experiment = tuning(["naive"], SPACE, Search(3), small(split="vali"))
    run_small(ResultsFolder(tmp_path), experiment)
    results = read_results(tmp_path)
    trials = trials_of(results)
    by_hand = {
        name: sum(r.notes["validation"] for cell, r in results.cells.items() if cell.method == name) / 4
        for name in experiment.method
    }
    assert [trial.score for trial in trials] == pytest.approx(sorted(by_hand.values(), reverse=True))
    best = max(by_hand, key=lambda name: by_hand[name])
    assert trials[0].settings == experiment.method[best].settings
    as_method = parse_experiment({**SMALL, **tomllib.loads(best_toml(trials)), "grid": [{"method": ["naive"]}]})
    assert as_method.method["naive"].settings == trials[0].settings


def test_the_search_spaces_of_all_learners_are_sound() -> None:
    spaces = search_spaces()
    assert {"naive", "ipw", "sac", "cql", "factored", "lightgbm"} <= spaces.keys()
    tuning(list(spaces), spaces, Search(1_000), small())


@pytest.mark.parametrize("change", [{"trials": 0}, {"seed": -1}])
def test_a_search_out_of_range_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(InputError, match=f"setting '{next(iter(change))}'"):
        tuning(["naive"], SPACE, Search(**change), small())  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["[naive]\nrate = 3", "naive = 3", "[naive]\nrate = []"])
def test_a_space_without_a_list_of_values_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises(InputError, match="expected a list of values"):
        search_spaces(tmp_path / "space.toml")
