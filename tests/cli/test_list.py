import json

from tests.cli.conftest import Run


def test_everything_with_a_name_is_listed(run: Run) -> None:
    names = json.loads(run("list", "--json").out)
    assert {"mslr-web10k", "yahoo-set1", "mq2008"} <= set(names["data sets"])
    assert {"pbm", "cascade", "dcm", "ccm", "ubm"} <= set(names["click models"])
    assert {"web10k-like", "yahoo-like", "tiny"} == set(names["generated data sets"])
    assert {"sac", "cql", "bc"} <= set(names["learners"])
    assert {"attention", "position"} <= set(names["encoders"])
    assert names["presets of training"] == ["default", "paper"]
    assert {"ndcg@k", "clicks:<click model>@k"} <= set(names["measures"])
    assert {"table1", "table2", "conservatism", "logging_quality", "robustness"} <= set(names["experiments"])


def test_the_table_has_the_same_names(run: Run) -> None:
    text = run("list").out
    for known in json.loads(run("list", "--json").out).values():
        assert all(name in text for name in known)
