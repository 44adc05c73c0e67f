from pathlib import Path

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.evaluation.trec import write_qrels, write_run
from cuolr.types import Candidates, RankingDataset


def two_queries(*ids: str) -> RankingDataset:
    """Query a has documents of grade 2, 0, 1, query b one of grade 0."""
    names = np.array(ids) if ids else None
    candidates = Candidates(np.zeros((4, 1), np.float32), np.array([0, 3, 4]), np.array(["a", "b"]), names)
    return RankingDataset(candidates, np.array([2, 0, 1, 0], np.int8), 2)


def test_qrels_have_a_line_for_every_document(tmp_path: Path) -> None:
    write_qrels(tmp_path / "new" / "qrels", two_queries("x", "y", "z", "x"))
    assert (tmp_path / "new" / "qrels").read_text().splitlines() == ["a 0 x 2", "a 0 y 0", "a 0 z 1", "b 0 x 0"]


def test_a_run_has_scores_that_fall_with_the_position(tmp_path: Path) -> None:
    write_run(tmp_path / "run", two_queries("x", "y", "z", "x").candidates, np.array([[2, 0], [0, -1]]))
    lines = ["a Q0 z 1 2 cuolr", "a Q0 x 2 1 cuolr", "b Q0 x 1 2 cuolr"]
    assert (tmp_path / "run").read_text().splitlines() == lines


def test_a_document_without_an_id_has_the_same_name_in_both_files(tmp_path: Path) -> None:
    for dataset, names in (
        (two_queries(), ["1", "2", "3", "1"]),
        (two_queries("x", "", "z", ""), ["x", "2", "z", "1"]),
    ):
        assert dataset.candidates.document_names.tolist() == names
        write_qrels(tmp_path / "qrels", dataset)
        write_run(tmp_path / "run", dataset.candidates, np.array([[0, 1, 2], [0, -1, -1]]))
        for file in ("qrels", "run"):
            assert [line.split()[2] for line in (tmp_path / file).read_text().splitlines()] == names


def test_names_that_a_trec_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    for ids, problem in (
        (("x y", "y", "z", "x"), "spaces, found doc_id 'x y'"),
        (("2", "", "z", "x"), "found '2' of 'a'"),
    ):
        with pytest.raises(InputError, match=problem):
            write_qrels(tmp_path / "qrels", two_queries(*ids))
    assert not list(tmp_path.iterdir())
