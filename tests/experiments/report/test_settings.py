from typing import Any

from cuolr.experiments.report.settings import Setting, columns_of, settings_of
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import parse_experiment


def experiment(*grids: dict[str, Any], columns: str = "click_model") -> Experiment:
    methods = {"LOGGING": {"learner": "logging"}, "ORACLE": {"learner": "oracle"}}
    named = [{"method": ["LOGGING", "ORACLE", "naive"], **grid} for grid in grids]
    return parse_experiment({"title": "t", "grid": named, "method": methods, "report": {"columns": columns}})


def columns(given: Experiment) -> list[tuple[str, tuple[str, ...]]]:
    found = columns_of(given, settings_of(given.cells([])))
    return [(table.title, table.labels) for table in found]


def test_reference_rankers_belong_to_every_setting_that_they_do_not_depend_on() -> None:
    setting = Setting("random", "pbm", 10)
    assert setting.includes(Cell("ORACLE"))
    assert setting.includes(Cell("LOGGING", logging="random"))
    assert not setting.includes(Cell("LOGGING", logging="ranksvm"))
    assert setting.includes(Cell("cql", logging="random", click_model="pbm", sessions_per_query=10))
    assert not setting.includes(Cell("cql", logging="random", click_model="pbm", sessions_per_query=20))


def test_click_models_are_the_columns_of_one_table() -> None:
    assert columns(experiment({"click_model": ["pbm", "dcm"]})) == [("", ("PBM", "DCM"))]


def test_what_is_not_in_the_columns_gets_a_table_each() -> None:
    found = columns(experiment({"click_model": ["pbm", "dcm"], "logging": ["ranksvm", "random"]}))
    assert found == [("ranksvm", ("PBM", "DCM")), ("random", ("PBM", "DCM"))]


def test_the_layout_says_what_the_columns_are() -> None:
    grid = {"click_model": ["pbm", "dcm"], "logging": ["ranksvm", "random"]}
    found = columns(experiment(grid, columns="logging"))
    assert found == [("PBM", ("ranksvm", "random")), ("DCM", ("ranksvm", "random"))]


def test_settings_that_would_be_alone_share_a_table() -> None:
    found = columns(experiment({"sessions_per_query": [1, 10]}))
    assert found == [("", ("1 session per query", "10 sessions per query"))]


def test_a_grid_with_a_title_has_its_own_table_and_rows() -> None:
    given = experiment(
        {"title": "Bias", "click_model": ["pbm", "dcm"]},
        {"title": "Sessions", "sessions_per_query": [1, 10], "method": ["dla"]},
    )
    tables = columns_of(given, settings_of(given.cells([])))
    assert [(table.title, table.methods) for table in tables] == [
        ("Bias", ("LOGGING", "ORACLE", "naive")),
        ("Sessions", ("dla",)),
    ]


def test_reference_rankers_alone_have_a_column_too() -> None:
    assert columns(experiment({"method": ["LOGGING", "ORACLE"]})) == [("", ("all",))]
