import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import cuolr
from cuolr.clicks.click_model import click_model_from
from cuolr.data.synthetic import generate_splits
from cuolr.errors import InputError, InputWarning
from cuolr.examination.propensities import Estimate, Propensities, save_propensities
from cuolr.learners.rl.cql import CQL
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.random_policy import RandomPolicy
from cuolr.types import RankingDataset

QUICK = {"learner.hidden": [8, 8], "learner.encoder": "position", "training.validate_every": 3}


@pytest.fixture(scope="module")
def splits() -> tuple[RankingDataset, RankingDataset, RankingDataset]:
    return generate_splits("tiny", 30, 10, 10, seed=1)


@pytest.fixture(scope="module")
def log(splits: tuple[RankingDataset, RankingDataset, RankingDataset]) -> ClickLog:
    return cuolr.simulate(splits[0], RandomPolicy(1), click_model_from({"name": "pbm"}), sessions=300, k=5)


def test_five_lines_from_a_log_to_rankings(log: ClickLog, tmp_path: Path) -> None:
    cuolr.save_click_log(log, tmp_path / "log")
    read = cuolr.load_click_log(tmp_path / "log")
    ranker = cuolr.Ranker(learner="cql", steps=6, batch_size=8, settings=QUICK).fit(read)
    ranking = ranker.rank(read.candidates, k=5)
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(cuolr.load_policy(tmp_path / "model").rank(read.candidates, 5), ranking)
    assert ranking.shape == (30, 5)
    assert ranker.result_.validations.keys() == {3, 6}


def test_labelled_queries_choose_the_policy(
    log: ClickLog, splits: tuple[RankingDataset, RankingDataset, RankingDataset]
) -> None:
    ranker = cuolr.Ranker("sac", steps=6, batch_size=8, settings=QUICK).fit(log, validation=splits[1])
    best = ranker.result_.best
    assert best is not None
    assert best.score == max(ranker.result_.validations.values())
    assert cuolr.evaluate(ranker.policy_, splits[1]).means()["ndcg@10"] == pytest.approx(best.score)


def test_a_saved_model_says_how_it_was_trained_as_that_of_the_command_does(log: ClickLog, tmp_path: Path) -> None:
    ranker = cuolr.Ranker("sac", preset="paper", steps=4, batch_size=8, settings=QUICK).fit(log)
    ranker.save(str(tmp_path / "model"))
    provenance = json.loads((tmp_path / "model" / "model.json").read_text())["provenance"]
    assert provenance["preset"] == "paper"
    assert provenance["settings"]["training"]["steps"] == 4
    assert {"cuolr", "torch", "numpy", "python"} <= set(provenance["versions"])
    best = ranker.result_.best
    assert best is not None
    assert provenance["training"] == {"step": best.step, "validation": best.score, "steps": 4, "finished": True}


def test_a_log_of_features_that_are_not_finite_is_refused_in_words(log: ClickLog) -> None:
    features = log.candidates.features.copy()
    features[3, 1] = np.inf
    broken = replace(log, candidates=replace(log.candidates, features=features))
    with pytest.raises(InputError, match="feature 2: expected finite numbers, found infinity"):
        cuolr.Ranker("sac", steps=2, settings=QUICK).fit(broken)


def test_validation_queries_of_other_features_are_refused_before_training(
    log: ClickLog, splits: tuple[RankingDataset, RankingDataset, RankingDataset]
) -> None:
    narrow = replace(splits[1].candidates, features=splits[1].candidates.features[:, 1:])
    found = log.candidates.n_features - 1
    with pytest.raises(InputError, match=rf"validation: expected documents of {found + 1} features, .* found {found}"):
        cuolr.Ranker("sac", steps=2, settings=QUICK).fit(log, replace(splits[1], candidates=narrow))


def test_rankings_are_drawn_by_a_seed(log: ClickLog) -> None:
    ranker = cuolr.Ranker("sac", steps=2, batch_size=8, settings=QUICK).fit(log)
    best, *drawn = (ranker.rank(log.candidates, 5, sample_seed=seed) for seed in (None, 1, 1, 2))
    np.testing.assert_array_equal(best, ranker.rank(log.candidates, 5))
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    assert (drawn[0] != best).any()


def test_rankings_that_make_no_sense_are_refused(log: ClickLog) -> None:
    ranker = cuolr.Ranker("sac", steps=2, batch_size=8, settings=QUICK).fit(log)
    with pytest.raises(InputError, match="k: expected a whole number >= 1, found -1"):
        ranker.rank(log.candidates, -1)
    with pytest.raises(InputError, match="seed: expected a whole number >= 0, found -1"):
        ranker.rank(log.candidates, sample_seed=-1)
    with pytest.raises(InputError, match="k: expected a whole number >= 1, found 0"):
        RandomPolicy(1).rank(log.candidates, 0)


def test_features_are_found_by_the_names_that_the_log_gives_them(log: ClickLog, tmp_path: Path) -> None:
    names = np.array([f"f{i}" for i in range(log.candidates.n_features)])
    named = replace(log, candidates=replace(log.candidates, feature_names=names))
    cuolr.save_click_log(named, tmp_path / "log")
    read = cuolr.load_click_log(tmp_path / "log")
    for learner in ("sac", "naive"):
        ranker = cuolr.Ranker(learner, steps=2, batch_size=8, settings={"learner.hidden": [8, 8]}).fit(read)
        ranker.save(tmp_path / learner)
        policy = cuolr.load_policy(tmp_path / learner)
        expected = policy.rank(log.candidates, 5)  # without names: as they stand
        turned = replace(log.candidates, features=log.candidates.features[:, ::-1], feature_names=names[::-1])
        np.testing.assert_array_equal(policy.rank(turned, 5), expected)
        with pytest.raises(InputError, match="feature 'f0' is missing"):
            policy.rank(replace(turned, feature_names=np.char.replace(names[::-1], "f0", "g")), 5)


def test_fitting_again_starts_anew(log: ClickLog) -> None:
    ranker = cuolr.Ranker("sac", steps=4, batch_size=8, seed=3, settings=QUICK)
    once, again = (ranker.fit(log).policy_.arrays() for _ in range(2))
    assert once.keys() == again.keys()
    for name, values in once.items():
        np.testing.assert_array_equal(values, again[name])


def test_settings_are_checked_at_once() -> None:
    with pytest.raises(InputError, match="unknown learner"):
        cuolr.Ranker("cqll")
    with pytest.raises(InputError, match="unknown setting"):
        cuolr.Ranker(settings={"learner.wieght": 1})
    with pytest.raises(
        InputError, match="batch_size=64: factored does not use it; remove it, or choose another learner: affine, bc"
    ):
        cuolr.Ranker(batch_size=64)


def test_the_preset_of_the_paper_is_of_its_learner() -> None:
    assert cuolr.Ranker().config.learner == "factored"
    assert cuolr.Ranker(preset="paper").config.learner == "cql"


def test_ranking_before_fitting_says_what_to_do(log: ClickLog) -> None:
    with pytest.raises(InputError, match=r"this Ranker is not fitted yet; call fit\(log\) first"):
        cuolr.Ranker().rank(log.candidates)


@pytest.mark.parametrize("learner", ["ipw", "cm-ipw"])
def test_a_learner_that_needs_propensities_says_how_to_give_them(log: ClickLog, learner: str) -> None:
    with pytest.raises(InputError, match=r"give propensities"):
        cuolr.Ranker(learner, steps=2).fit(log)


@pytest.mark.thorough
def test_it_says_whether_it_is_ready_and_knows_the_log_that_it_was_fitted_on(log: ClickLog) -> None:
    ranker = cuolr.Ranker("naive", steps=4, batch_size=8, settings={"learner.hidden": [8, 8]}).fit(log)
    own = ranker.assess(log)
    every_query = len(np.unique(log.query))
    assert own.queries == max(1, round(0.1 * every_query))
    assert own.recommendation == "keep", "too few"
    assert ranker.assess(aggregate(log)).queries == own.queries, "however it is written down"
    assert ranker.assess(log.select(np.random.default_rng(0).permutation(len(log)))).queries == own.queries
    other = ranker.assess(replace(log, clicks=1 - log.clicks))
    assert other.queries == every_query


def test_scikit_learn_clones_an_unfitted_copy(log: ClickLog) -> None:
    ranker = cuolr.Ranker("sac", steps=2, batch_size=8, settings=QUICK).fit(log)
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert copy.config == ranker.config
    assert not hasattr(copy, "result_")
    np.testing.assert_array_equal(copy.fit(log).rank(log.candidates), ranker.rank(log.candidates))


def test_parameters_are_changed_all_or_none() -> None:
    ranker = cuolr.Ranker("sac", steps=2)
    assert ranker.set_params(steps=5, seed=4) is ranker
    assert (ranker.config.training.steps, ranker.config.training.seed) == (5, 4)
    with pytest.raises(InputError, match="unknown parameter 'step'; known: learner, preset, steps"):
        ranker.set_params(step=3)
    with pytest.raises(InputError, match="unknown learner"):
        ranker.set_params(steps=7, learner="sacc")
    assert ranker.get_params()["steps"] == ranker.config.training.steps == 5
    assert repr(ranker) == "Ranker(learner='sac', steps=5, seed=4)"


def test_a_learner_can_be_given_as_its_config(log: ClickLog) -> None:
    config = CQL.Config(conservative_weight=0.5, hidden=(8, 8), encoder="position")
    ranker = cuolr.Ranker(learner=config, steps=2, batch_size=8).fit(log)
    assert ranker.config.learner == "cql"
    assert ranker.config.learner_config is config
    assert ranker.result_.provenance["settings"]["learner"]["conservative_weight"] == 0.5
    with pytest.raises(InputError, match=r"setting 'learner.hidden': learner is given as a Config; set it there"):
        cuolr.Ranker(learner=config, settings={"learner.hidden": [4, 4]})
    with pytest.raises(InputError, match="learner: expected a name or an instance of a learner's Config"):
        cuolr.Ranker(learner=7)


@pytest.mark.thorough
def test_a_loaded_ranker_knows_its_settings_its_score_and_its_log(log: ClickLog, tmp_path: Path) -> None:
    ranker = cuolr.Ranker("sac", steps=6, batch_size=8, settings=QUICK).fit(log)
    ranker.save(tmp_path / "model")
    loaded = cuolr.Ranker.load(tmp_path / "model")
    assert loaded.config == ranker.config
    assert loaded.best_score_ == ranker.best_score_ == max(ranker.result_.validations.values())
    np.testing.assert_array_equal(loaded.rank(log.candidates), ranker.rank(log.candidates))
    assert loaded.assess(log) == ranker.assess(log)
    assert loaded.assess(log).queries < log.candidates.n_queries  # the held-out ones alone


def test_a_policy_without_provenance_can_be_loaded(log: ClickLog, tmp_path: Path) -> None:
    cuolr.save_policy(RandomPolicy(3), tmp_path / "model")
    loaded = cuolr.Ranker.load(tmp_path / "model")
    assert loaded.best_score_ is None
    np.testing.assert_array_equal(loaded.rank(log.candidates, 4), RandomPolicy(3).rank(log.candidates, 4))


def test_documents_are_ranked_by_their_ids(log: ClickLog) -> None:
    sizes = log.candidates.sizes
    ids = np.concatenate([[f"q{query}d{i}" for i in range(size)] for query, size in enumerate(sizes)])
    candidates = replace(log.candidates, document_ids=ids)
    ranker = cuolr.Ranker("naive", steps=2, settings={"learner.hidden": [8]}).fit(log)
    indices, named = ranker.rank(candidates, 12), ranker.rank_ids(candidates, 12)
    for query, (row, names) in enumerate(zip(indices, named, strict=True)):
        assert names.tolist() == [f"q{query}d{index}" if index >= 0 else "" for index in row]


def test_propensities_are_given_as_an_object_or_as_a_file(log: ClickLog, tmp_path: Path) -> None:
    propensities = Propensities(Estimate((1.0, 0.7, 0.5, 0.4, 0.3)))
    save_propensities(propensities, tmp_path / "own.json")
    ranker = cuolr.Ranker("ipw", steps=2, settings={"learner.hidden": [8]})
    of_object = ranker.fit(log, propensities=propensities).rank(log.candidates)
    np.testing.assert_array_equal(ranker.fit(log, propensities=tmp_path / "own.json").rank(log.candidates), of_object)
    with pytest.raises(
        InputError, match="propensities: naive does not use it; remove it, or choose another learner: cm-ipw"
    ):
        cuolr.Ranker("naive").fit(log, propensities=propensities)


def test_a_ranker_is_evaluated_as_its_policy_is(
    log: ClickLog, splits: tuple[RankingDataset, RankingDataset, RankingDataset]
) -> None:
    ranker = cuolr.Ranker("naive", steps=2, settings={"learner.hidden": [8]}).fit(log)
    assert cuolr.evaluate(ranker, splits[2]).means() == cuolr.evaluate(ranker.policy_, splits[2]).means()


@pytest.mark.thorough
def test_a_loaded_policy_knows_its_own_log(log: ClickLog, tmp_path: Path) -> None:
    ranker = cuolr.Ranker("naive", steps=2, settings={"learner.hidden": [8]}).fit(log)
    ranker.save(tmp_path / "model")
    assert cuolr.assess(cuolr.load_policy(tmp_path / "model"), log) == ranker.assess(log)


def test_a_loaded_ranker_can_be_given_other_steps(log: ClickLog, tmp_path: Path) -> None:
    cuolr.Ranker("sac", steps=2, seed=3, batch_size=8, settings=QUICK).fit(log).save(tmp_path / "model")
    loaded = cuolr.Ranker.load(tmp_path / "model")
    assert (loaded.steps, loaded.seed) == (2, 3)
    assert loaded.set_params(steps=7).config.training.steps == 7


def test_a_model_whose_learner_is_not_installed_ranks_all_the_same(log: ClickLog, tmp_path: Path) -> None:
    provenance = {"settings": {"learner": {"name": "foreign"}, "training": {"steps": 2, "seed": 1}}}
    cuolr.save_policy(RandomPolicy(3), tmp_path / "model", provenance)
    loaded = cuolr.Ranker.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.rank(log.candidates, 4), RandomPolicy(3).rank(log.candidates, 4))
    assert loaded.result_.provenance == provenance


def test_a_setting_is_given_once() -> None:
    with pytest.raises(InputError, match=r"settings: 'training.steps' is given by the parameter steps, too"):
        cuolr.Ranker("sac", steps=5, settings={"training.steps": 9})


def test_numbers_of_numpy_are_numbers() -> None:
    config = cuolr.Ranker("sac", steps=np.int64(7), settings={"learner.discount": np.float32(0.5)}).config  # type: ignore[arg-type]
    assert (config.training.steps, config.learner_config.discount) == (7, 0.5)


@pytest.mark.thorough
def test_a_fitted_policy_knows_its_own_log(log: ClickLog) -> None:
    ranker = cuolr.Ranker("naive", steps=2, settings={"learner.hidden": [8]}).fit(log)
    expected = ranker.assess(log)
    assert expected.held_out
    assert cuolr.assess(ranker.policy_, log) == cuolr.assess(ranker, log) == expected


def test_the_candidates_of_a_data_set_are_ranked(
    log: ClickLog, splits: tuple[RankingDataset, RankingDataset, RankingDataset]
) -> None:
    ranker = cuolr.Ranker("naive", steps=2, settings={"learner.hidden": [8]}).fit(log)
    np.testing.assert_array_equal(ranker.rank(splits[2]), ranker.rank(splits[2].candidates))


def test_an_argument_of_another_type_is_one_line_that_says_what_to_give(
    log: ClickLog, splits: tuple[RankingDataset, RankingDataset, RankingDataset]
) -> None:
    labelled, documents, ranker = (
        splits[0],
        splits[0].candidates,
        cuolr.Ranker("naive", steps=2, settings={"learner.hidden": [8]}),
    )

    def refused(expected: str, call: Callable[[], object]) -> None:
        with pytest.raises(InputError) as error:
            call()
        (problem,) = error.value.problems
        assert problem.startswith(f"{expected}; ")

    refused("log: expected a ClickLog, found a RankingDataset", lambda: ranker.fit(labelled))  # type: ignore[arg-type]
    refused("log: expected a ClickLog, found a str", lambda: ranker.fit("LOG"))  # type: ignore[arg-type]
    refused(
        "validation: expected a RankingDataset, found a Candidates",
        lambda: ranker.fit(log, validation=documents),  # type: ignore[arg-type]
    )
    refused(
        "propensities: expected a Propensities, found a list",
        lambda: cuolr.Ranker("ipw").fit(log, propensities=[1.0, 0.5]),  # type: ignore[arg-type]
    )
    refused("settings: expected a Mapping, found a str", lambda: cuolr.Ranker(settings="x"))  # type: ignore[arg-type]
    refused("preset: expected a str, found a int", lambda: cuolr.Ranker(preset=3))  # type: ignore[arg-type]
    ranker.fit(log)
    refused("dataset: expected a RankingDataset, found a Candidates", lambda: cuolr.evaluate(ranker, documents))  # type: ignore[arg-type]
    refused("candidates: expected a Candidates, found a ClickLog", lambda: ranker.rank(log))
    refused("log: expected a ClickLog, found a RankingDataset", lambda: ranker.assess(labelled))  # type: ignore[arg-type]
    np.testing.assert_array_equal(ranker.rank_ids(labelled), ranker.rank_ids(documents))


def table_of_lamps(queries: int = 30) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Clicks on red lamps, and lamps with missing prices; by data frames as they come."""
    colours = ["red", "blue", None, "green"]
    lamps = pl.DataFrame(
        [
            (f"q{query}", f"lamp {query}-{i}", colours[(i + query) % 4], None if i == 2 else 10.0 * i)
            for query in range(queries)
            for i in range(4)
        ],
        schema=["query_id", "doc_id", "colour", "price"],
        orient="row",
    )
    shown = lamps.with_columns(
        session_id="query_id",
        position=pl.int_range(1, pl.len() + 1).over("query_id"),
        click=(pl.col("colour") == "red").fill_null(False).cast(pl.Int8),
    )
    return shown.select("query_id", "session_id", "position", "doc_id", "click"), lamps


@pytest.mark.parametrize("learner", ["naive", "lightgbm"])
def test_raw_tables_are_ranked_by_the_recipe_of_the_model(learner: str, tmp_path: Path) -> None:
    clicks, lamps = table_of_lamps()
    log = cuolr.import_log(clicks, lamps)
    settings = {"learner.learning_rate": 0.05} | (
        {"learner.hidden": [8]} if learner == "naive" else {"learner.min_documents_per_leaf": 5}
    )
    cuolr.Ranker(learner, steps=60, settings=settings).fit(log).save(tmp_path / "model")
    ranker = cuolr.Ranker.load(tmp_path / "model")
    assert ranker.policy_.recipe == log.candidates.recipe
    new = pl.DataFrame(
        {
            "price": [5.0, 30.0, None],
            "colour": ["pink", "red", None],
            "query_id": ["new"] * 3,
            "doc_id": ["a", "b", "c"],
        }
    )
    with pytest.warns(InputWarning, match="'pink'"):
        assert ranker.rank_ids(new, k=1).tolist() == [["b"]]
    new.filter(pl.col("colour") == "red").write_csv(tmp_path / "new.csv")
    assert ranker.rank_ids(tmp_path / "new.csv", k=1).tolist() == [["b"]]
    with pytest.raises(InputError, match="the features: column 'price' is missing; the model was trained with it"):
        ranker.rank(new.drop("price"))
    with pytest.raises(InputError, match="column 'colour' was encoded in another way than in training"):
        ranker.rank(cuolr.read_candidates(new))
