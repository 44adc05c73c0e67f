import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.experiments.report.paper import NOTES, NUMBERS, Place, notes_on, paper_gap_closed, paper_number
from cuolr.experiments.report.settings import Setting, columns_of, settings_of
from cuolr.experiments.report.summary import equal_methods, summarise
from cuolr.experiments.report.table_files import markdown
from cuolr.experiments.report.wording import (
    ORACLE_NOTE,
    caption,
    findings,
    gap_caption,
    meaning_of_stars,
    paper_notes,
    rival,
    what_was_run,
)
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import parse_experiment
from cuolr.types import Doubles
from tests.experiments.made_up import DATA, PerQuery, sessions_like, table1_like, write_made_up


def test_the_first_sentence_says_what_was_run_and_what_is_not_there(tmp_path: Path) -> None:
    results = write_made_up(
        tmp_path,
        table1_like(),
        (1, 2),
        queries=20,
        fail=lambda cell: "no" if cell.method == "DLA" and cell.click_model == "pbm" and cell.fold == 1 else "",
        skip=lambda cell: cell.method == "IPW" and cell.click_model == "ccm",
    )
    cells = 2 * (2 + 6 * 5)
    expected = f"6 methods under 5 click models on MQ2008, 2 folds: {cells} cells, of which 1 failed and 2 missing."
    assert what_was_run(summarise(results)) == expected


def test_findings_name_the_leader_and_the_gap_it_closes(tmp_path: Path) -> None:
    summary = summarise(write_made_up(tmp_path, sessions_like(), (), queries=60))
    sentences = findings(summary.tables[0], "ndcg@10")
    assert sentences[0].startswith("By nDCG@10, CUOLR(CQL) leads with all 4 log sizes, significantly better")
    assert sentences[1].startswith("It closes ")
    assert "% of the gap between LOGGING and ORACLE on average, from " in sentences[1]


@pytest.mark.parametrize(("sure", "words"), [((), "not significantly better"), (("pbm",), " in 1 of 2 cases")])
def test_findings_say_how_often_the_leader_is_significantly_better(
    tmp_path: Path, sure: tuple[str, ...], words: str
) -> None:
    experiment = table1_like(grid=[{"method": ["naive", "CUOLR(CQL)"], "click_model": ["pbm", "dcm"]}])

    def values(cell: Cell, measure: str) -> Doubles:
        noise = np.random.default_rng(1).normal(0, 0.1, 50)
        ahead = cell.method == "CUOLR(CQL)"
        return 0.4 + ahead * (0.2 + 0.01 * noise if cell.click_model in sure else 0.001 + noise - noise.mean())

    summary = summarise(write_made_up(tmp_path, experiment, (1,), queries=50, per_query=values))
    assert words in findings(summary.tables[0], "ndcg@10")[0]


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    summary = summarise(write_made_up(tmp_path, sessions_like(), (), queries=20, skip=lambda cell: True))
    assert findings(summary.tables[0], "ndcg@10") == []


@pytest.mark.thorough
def test_the_caption_explains_what_the_table_has(tmp_path: Path) -> None:
    summary = summarise(write_made_up(tmp_path, table1_like(), (1, 2), queries=20))
    text = caption(summary, summary.tables[0])
    assert text.startswith("Mean ± standard deviation over 2 folds; the best learner in bold; * p < 0.05")
    untested = summarise(write_made_up(tmp_path / "other", table1_like(report={"baselines": []}), (1,), queries=20))
    assert caption(untested, untested.tables[0]) == "One fold; the best learner in bold."


@pytest.mark.thorough
def test_a_baseline_that_has_no_other_beside_it_is_named(tmp_path: Path) -> None:
    several = summarise(write_made_up(tmp_path, table1_like(), (1, 2), queries=20)).tables[0]
    one = table1_like(report={"baselines": ["DLA"]})
    alone = summarise(write_made_up(tmp_path / "one", one, (1, 2), queries=20)).tables[0]
    assert (rival(several), rival(alone)) == ("the best baseline", "DLA")
    assert "better than DLA under the same click model" in meaning_of_stars(alone)


def test_methods_with_the_same_value_on_every_query_are_named_with_where(tmp_path: Path) -> None:
    methods = ["LOGGING", "ORACLE", "naive", "CM-IPW", "DLA", "IPW"]

    def values(cell: Cell, measure: str) -> Doubles:
        # Three are the same under CASCADE and DCM; under PBM, but for one query; elsewhere, none are.
        alike = cell.method in ("naive", "CM-IPW", "IPW") and cell.click_model != "ubm"
        number = methods.index(cell.method)
        drawn = np.random.default_rng([0 if alike else number, cell.fold]).random(20)
        drawn[0] = number / 10 if cell.click_model == "pbm" else drawn[0]
        return drawn

    experiment = table1_like(grid=[{"method": methods, "click_model": ["pbm", "cascade", "dcm", "ubm"]}])
    summary = summarise(write_made_up(tmp_path, experiment, (1, 2), per_query=values))
    table = summary.tables[0]
    expected = " The same value on every query: naive, CM-IPW and IPW under CASCADE and DCM."
    assert caption(summary, table).endswith(expected)
    other = write_made_up(
        tmp_path / "other",
        experiment,
        (1, 2),
        per_query=values,
        skip=lambda cell: cell.method == "naive" and cell.fold == 2,
    )
    # Other runs are not comparable.
    assert equal_methods(summarise(other), table, table.columns.settings[1]) == [("CM-IPW", "IPW")]


@pytest.mark.thorough
def test_notes_on_the_paper_are_given_only_where_its_numbers_are_shown(tmp_path: Path) -> None:
    beside = summarise(write_made_up(tmp_path, table1_like(), (1,), queries=20))
    alone = summarise(write_made_up(tmp_path / "other", table1_like(report={}), (1,), queries=20))
    assert [note.mark for note in paper_notes(beside)] == ["a", "b"]
    assert paper_notes(alone) == []


@pytest.mark.thorough
def test_that_the_oracle_is_no_upper_bound_is_said_only_where_it_is_beaten(tmp_path: Path) -> None:
    def values(best: float) -> PerQuery:
        means = {"LOGGING": 0.1, "ORACLE": 0.5, "CUOLR(CQL)": best}
        return lambda cell, measure: means.get(cell.method, 0.2) * np.linspace(0.5, 1.5, 20)

    below = summarise(write_made_up(tmp_path, table1_like(), (1,), per_query=values(0.4)))
    above = summarise(write_made_up(tmp_path / "other", table1_like(), (1,), per_query=values(0.6)))
    assert ORACLE_NOTE not in gap_caption(below)
    assert ORACLE_NOTE in gap_caption(above)


@pytest.mark.thorough
def test_letters_of_notes_are_there_only_where_a_number_has_one(tmp_path: Path) -> None:
    ours = summarise(write_made_up(tmp_path, table1_like(), (1,), queries=20))
    yahoo = {**DATA, "name": "Yahoo", "paper_name": "yahoo-set1"}
    theirs = summarise(write_made_up(tmp_path / "other", table1_like(), (1,), queries=20, data=yahoo))
    note = "The paper reports an ERR@10 of .476 for ORACLE on Yahoo"
    assert f"(a) {note}" not in markdown(ours)
    assert note in markdown(ours)
    assert f"(a) {note}" in markdown(theirs)


TABLES = ["table1_click_models", "appendix_click_models"]


def test_all_numbers_of_the_paper_are_there() -> None:
    with NUMBERS.open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 778


def test_the_first_table_that_has_a_number_counts() -> None:
    place = Place("yahoo-set1", "pbm", "CUOLR(CQL)", "ndcg@3")
    assert paper_number(place, ["table1_click_models"]) is None
    found = paper_number(place, TABLES)
    assert found is not None
    assert found.value == 0.678


def test_the_gap_closed_is_worked_out_from_the_papers_means() -> None:
    found = paper_gap_closed(Place("mslr-web10k", "pbm", "CUOLR(CQL)", "ndcg@10"), TABLES)
    assert found == pytest.approx((0.406 - 0.338) / (0.453 - 0.338))


def test_the_oracle_on_yahoo_is_the_one_of_most_tables() -> None:
    found = paper_gap_closed(Place("yahoo-set1", "pbm", "CUOLR(SAC)", "err@10"), TABLES)
    assert found == pytest.approx((0.478 - 0.403) / (0.486 - 0.403))


def test_a_number_that_cannot_be_is_replaced_by_the_one_that_fits() -> None:
    place = Place("yahoo-set1", "pbm", "POS+PREDOC", "err@5")
    for tables in (["table2_state_embedding"], ["appendix_state_embedding"]):
        found = paper_number(place, tables)
        assert found is not None
        assert (found.value, found.marks) == (0.440, "c")


def test_logging_policies_are_told_apart_and_only_the_usual_one_has_a_gap() -> None:
    usual, weak = (Place("mslr-web10k", "dcm", "CUOLR(CQL)", "ndcg@10", f"por={x}%") for x in ("1", "0.01"))
    values = [paper_number(place, ["logging_policy_quality"]) for place in (usual, weak)]
    assert [number.value for number in values if number] == [0.405, 0.367]
    assert paper_gap_closed(weak, ["logging_policy_quality"]) is None
    assert paper_gap_closed(usual, ["logging_policy_quality"]) == pytest.approx((0.405 - 0.338) / (0.453 - 0.338))


def test_what_the_paper_lacks_is_none() -> None:
    assert paper_number(Place("mq2008", "pbm", "CUOLR(CQL)", "ndcg@10"), TABLES) is None
    assert paper_gap_closed(Place("yahoo-set1", "pbm", "naive", "ndcg@10"), TABLES) is None


def test_notes_are_given_where_their_rows_are_shown() -> None:
    assert [note.mark for note in notes_on(["ORACLE", "CM-IPW"])] == ["a", "b"]
    assert notes_on(["naive"]) == []
    assert len({note.mark for note in NOTES}) == len(NOTES)


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
