import json

import pytest

from cuolr.clicks.click_model import CLICK_MODELS
from cuolr.networks.encoder import ENCODERS
from cuolr.training.base_learner import LEARNERS
from tests.cli.conftest import Run


def test_everything_with_a_name_is_listed(run: Run) -> None:
    names = json.loads(run("list", "--json").out)
    assert {"mslr-web10k", "yahoo-set1", "mq2008"} <= set(names["data-sets"])
    assert {"pbm", "cascade", "dcm", "ccm", "ubm"} <= set(names["click-models"])
    assert {"web10k-like", "yahoo-like", "tiny"} == set(names["generated-data"])
    assert {"sac", "cql", "bc"} <= set(names["learners"])
    assert {"attention", "position"} <= set(names["encoders"])
    assert names["presets"] == ["default", "paper"]
    assert {"ndcg@k", "clicks:<click model>@k"} <= set(names["measures"])
    assert {"table1", "table2", "conservatism", "logging_quality", "robustness"} <= set(names["experiments"])


def test_the_table_has_the_same_names(run: Run) -> None:
    text = run("list").out
    for kind, known in json.loads(run("list", "--json").out).items():
        assert all(name in text for name in (kind, *known))


def test_each_kind_can_be_listed_with_a_description_of_each_name(run: Run) -> None:
    for kind, names in json.loads(run("list", "--json").out).items():
        entries = json.loads(run("list", kind, "--json").out)
        assert sorted(entries) == names
        assert all(entry["description"] for entry in entries.values()), kind
        text = run("list", kind).out
        assert all(entry["description"] in text for entry in entries.values())


@pytest.mark.parametrize("name", sorted({*LEARNERS.names(), *ENCODERS.names(), *CLICK_MODELS.names(), "training"}))
def test_every_setting_has_a_meaning(run: Run, name: str) -> None:
    found = json.loads(run("list", name, "--json").out)
    assert found["settings"].keys() <= {"learner", "encoder", "click model", "training"}
    for settings in found["settings"].values():
        assert [setting["name"] for setting in settings if not setting["meaning"]] == []


def test_the_default_of_a_setting_is_that_of_the_default_preset(run: Run) -> None:
    (settings,) = json.loads(run("list", "cql", "--json").out)["settings"].values()
    defaults = {setting["name"]: setting["default"] for setting in settings}
    assert defaults["conservative_weight"] == "0.01"
    assert defaults["hidden"] == "[256, 256]"
    ranges = {setting["name"]: setting["range"] for setting in settings}
    assert ranges["conservative_weight"] == "a finite number >= 0"
    assert ranges["conservative_term"] == "one of 'logged', 'mean'"
    text = run("list", "cql").out
    assert "Settings of the learner" in text
    assert all(f"  {name} = {defaults[name]}  (" in text for name in defaults if len(defaults[name]) < 40)


def test_the_settings_of_training_are_those_of_the_default_preset(run: Run) -> None:
    (settings,) = json.loads(run("list", "training", "--json").out)["settings"].values()
    assert {setting["name"]: setting["default"] for setting in settings}["validate_every"] == "50"
    assert "Set one with: cuolr train LOG --set training." in run("list", "training").out


def test_a_learner_has_its_role(run: Run) -> None:
    learners = json.loads(run("list", "learners", "--json").out)
    assert (learners["cql"]["role"], learners["ipw"]["role"]) == ("method", "baseline")
    assert "baseline" in run("list", "learners").out


def test_what_has_no_settings_is_described(run: Run) -> None:
    assert run("list", "mq2008").out.startswith("mq2008 (data-sets): LETOR 4.0 MQ2008: 784 queries")
    assert len(run("list", "ndcg@k").out.splitlines()) == 1


def test_an_unknown_name_is_one_line_with_a_guess(run: Run) -> None:
    result = run("list", "lerners")
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert "unknown name 'lerners' (did you mean 'learners'?)" in result.err


@pytest.mark.parametrize(
    ("written", "name"),
    [("click_models", "click-models"), ("cm_ipw", "cm-ipw"), ("ndcg", "ndcg@k"), ("nDCG@10", "ndcg@k"), ("CQL", "cql")],
)
def test_a_name_may_be_written_another_way(run: Run, written: str, name: str) -> None:
    other, own = (run("list", spelling, "--json") for spelling in (written, name))
    assert (other.status, other.out) == (0, own.out)


def test_the_settings_say_how_to_set_one(run: Run) -> None:
    assert "Set one with: cuolr train LOG --learner cql --set learner." in run("list", "cql").out
    assert "--encoder attention --set learner.encoder_settings." in run("list", "attention").out
    assert "Set one with" not in run("list", "pbm").out
