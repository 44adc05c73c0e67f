"""Presets, settings, and the options that a learner uses."""

import dataclasses

import pytest

from cuolr.config import read_toml
from cuolr.errors import InputError
from cuolr.training.base_learner import LEARNERS
from cuolr.training.presets import PRESETS
from cuolr.training.presets.configure import USES, check_used, configure, parse_settings
from cuolr.training.training_config import TrainingConfig


def test_the_paper_preset_is_as_in_the_paper() -> None:
    config = configure("cql", "paper")
    learner, training = config.learner_config, config.training
    assert (learner.actor_learning_rate, learner.critic_learning_rate, learner.encoder_learning_rate) == (
        1e-4,
        1e-4,
        1e-6,
    )
    assert (learner.discount, learner.target_rate) == (0.8, 5e-3)
    assert (learner.entropy_weight, learner.conservative_weight, learner.conservative_term) == (1e-10, 0.1, "logged")
    assert (learner.encoder, learner.hidden, learner.candidates) == ("attention", (256, 256), "shown")
    assert learner.encoder_learns_from == "critics and actor"
    assert learner.encoder_settings == {"heads": 8}
    assert learner.precision == "float32"
    assert (training.steps, training.batch_size) == (2_000, 256)


@pytest.mark.parametrize("name", ["naive", "ipw", "cm-ipw", "dla"])
def test_the_paper_preset_of_the_baselines_is_as_in_the_paper(name: str) -> None:
    config = configure(name, "paper")
    learner, training = config.learner_config, config.training
    assert (learner.learning_rate, learner.hidden, training.batch_size) == (1e-4, (256, 256), 256)
    if name == "dla":
        assert (learner.examination_model, learner.examination_learning_rate) == ("network", 1e-4)
    if name == "cm-ipw":
        assert learner.estimate == "paper"


@pytest.mark.parametrize("name", ["naive", "ipw", "cm-ipw", "dla"])
def test_what_the_paper_preset_adds_to_the_paper_is_told(name: str) -> None:
    text, config = PRESETS["paper"].read_text(), configure(name, "paper").learner_config
    assert f"max_gradient_norm, {config.max_gradient_norm}" in text
    assert name == "naive" or f"max_weight, {config.max_weight:g}" in text


def test_the_two_presets_differ_only_where_the_default_says_so() -> None:
    text = PRESETS["default"].read_text()
    for learner in LEARNERS.names():
        paper, default = (configure(learner, preset).as_dict() for preset in ("paper", "default"))
        for section in ("learner", "training"):
            for name in {*paper[section], *default[section]}:
                if paper[section].get(name) != default[section].get(name):
                    assert f"# {name}: " in text, name


@pytest.mark.parametrize("preset", PRESETS)
def test_every_setting_of_a_preset_is_one_that_some_learner_has(preset: str) -> None:
    table = read_toml(PRESETS[preset])
    assert set(table) <= {"training", "learners", "learner"}
    fields = {name: {f.name for f in dataclasses.fields(LEARNERS.get(name).Config)} for name in LEARNERS.names()}
    assert set(table["learners"]) <= set().union(*fields.values())
    for name, settings in table.get("learner", {}).items():
        assert set(settings) <= fields[name]
    assert set(table["training"]) <= {field.name for field in dataclasses.fields(TrainingConfig)}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("learner", LEARNERS.names())
def test_every_preset_fits_every_learner(preset: str, learner: str) -> None:
    assert configure(learner, preset).learner == learner


def test_settings_are_changed_by_name() -> None:
    config = configure(
        "cql",
        "paper",
        {
            "learner.conservative_weight": 1,
            "learner.encoder_settings.heads": 4,
            "training.steps": 7,
            "training.seed": 3,
        },
    )
    assert config.learner_config.conservative_weight == 1.0
    assert config.learner_config.encoder_settings == {"heads": 4}
    assert (config.training.steps, config.training.seed, config.training.batch_size) == (7, 3, 256)
    assert configure("cql", "paper").learner_config.conservative_weight == 0.1


def test_settings_of_the_presets_encoder_go_with_it() -> None:
    assert configure("cql", "paper", {"learner.encoder": "position"}).learner_config.encoder_settings == {}
    kept = configure("cql", "paper", {"learner.encoder": "attention"}).learner_config.encoder_settings
    assert kept == {"heads": 8}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner.conservativ_weight": 1}, "unknown setting 'learner.conservativ_weight' \\(did you mean"),
        ({"training.step": 1}, r"unknown setting 'training.step' \(did you mean 'training.steps'\?\)"),
        ({"training.steps": 1.5}, r"setting 'training.steps': expected a whole number, found 1\.5"),
        ({"learner.hidden.first": 3}, "setting 'learner.hidden': expected"),
        ({"learner": 3}, "expected a name that starts with 'learner.' or 'training.'"),
        ({"steps": 3}, "setting 'steps': expected a name that starts with"),
    ],
)
def test_settings_are_strict(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        configure("cql", "paper", settings)


def test_a_learner_has_no_settings_of_another() -> None:
    with pytest.raises(InputError, match=r"unknown setting 'learner.conservative_weight'"):
        configure("sac", "paper", {"learner.conservative_weight": 0.1})


def test_values_are_written_as_in_toml_or_as_plain_text() -> None:
    assignments = [
        "a=1",
        "b = 0.5",
        "c=[1, 2]",
        "d=attention",
        'e="x=y"',
        "f=true",
        "g=1e-6",
        "h=critics and actor",
        "i=a=b",
    ]
    assert parse_settings(assignments) == {
        "a": 1,
        "b": 0.5,
        "c": [1, 2],
        "d": "attention",
        "e": "x=y",
        "f": True,
        "g": 1e-6,
        "h": "critics and actor",
        "i": "a=b",
    }
    for bad in ("steps", "=3"):
        with pytest.raises(InputError, match="expected <name>=<value>"):
            parse_settings([bad])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner.encoder": "atention"}, r"unknown encoder 'atention' \(did you mean 'attention'\?\); known: "),
        (
            {"learner.encoder_settings.head": 4},
            "unknown setting 'learner.encoder_settings.head' .*; known: learner.encoder_settings.document_size",
        ),
        (
            {"learner.encoder_settings.heads": 0},
            "setting 'learner.encoder_settings.heads': expected a whole number >= 1, found 0",
        ),
        (
            {"learner.encoder": "lstm", "learner.encoder_settings.size": 2.5},
            "setting 'learner.encoder_settings.size': expected a whole number, found 2.5",
        ),
        ({"training.normalising": "max"}, "setting 'training.normalising': expected one of 'min-max', 'log-min-max'"),
        ({"training.held_out": 1.5}, "setting 'training.held_out': expected above 0 and below 1, found 1.5"),
        ({"training.seed": 10**20}, "setting 'training.seed': expected 0 to 2147483647, found 1000000"),
    ],
)
def test_settings_are_checked_before_anything_starts(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        configure("sac", settings=settings)


def test_a_table_and_a_setting_in_it_are_both_taken_in_any_order() -> None:
    single, table = {"learner.click_rates.prior_strength": 7.0}, {"learner.click_rates": {"prior_steps": 3}}
    for settings in (single | table, table | single):
        config = configure("factored", settings=settings).learner_config.click_rates
        assert (config.prior_strength, config.prior_steps) == (7.0, 3)


@pytest.mark.parametrize("option", USES)
def test_an_option_is_refused_by_just_those_learners_that_it_does_not_name(option: str) -> None:
    refusing = next(name for name in LEARNERS.names() if not USES[option](LEARNERS.get(name)))
    with pytest.raises(InputError) as refused:
        check_used(refusing, option, "it")
    (problem,) = refused.value.problems
    named = problem.rpartition(": ")[2].split(", ")
    assert named
    for learner in LEARNERS.names():
        if learner in named:
            check_used(learner, option, "it")
        else:
            with pytest.raises(InputError, match=f"it: {learner} does not use it"):
                check_used(learner, option, "it")


def test_learners_with_an_encoder_use_it() -> None:
    assert "encoder" in {field.name for field in dataclasses.fields(LEARNERS.get("cql").Config)}
    check_used("cql", "encoder", "--encoder attention")
    with pytest.raises(
        InputError, match=r"--encoder attention: ipw does not use it; .* choose another --learner: .*cql"
    ):
        check_used("ipw", "encoder", "--encoder attention", "--learner")


def test_an_unknown_learner_is_named() -> None:
    with pytest.raises(InputError, match="unknown learner 'cqll'"):
        check_used("cqll", "encoder", "it")
