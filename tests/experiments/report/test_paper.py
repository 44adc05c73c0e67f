import csv

import pytest

from cuolr.experiments.report.paper import NOTES, NUMBERS, Place, notes_on, paper_gap_closed, paper_number

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
