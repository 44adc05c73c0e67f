from pathlib import Path

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.experiments.human_labels import read_labels
from cuolr.logs.importing.formats.baidu_ultr_uva import CLASSICAL
from cuolr.logs.importing.import_log import import_log_with_report
from tests.data.small_data import candidates_of
from tests.logs.importing.formats.test_baidu_ultr_uva import write_part

CANDIDATES = candidates_of(3, 2)  # d0, d1, d2 of q0; d3, d4 of q1


def assert_labels(file: Path) -> None:
    """Grades of three documents, two of them of the first query."""
    labels = read_labels(file, CANDIDATES)
    assert labels.candidates.query_ids.tolist() == ["q0", "q1"]
    assert labels.candidates.document_ids is not None
    assert labels.candidates.document_ids.tolist() == ["d0", "d2", "d4"]
    assert labels.relevance.tolist() == [1, 3, 0]
    np.testing.assert_array_equal(labels.candidates.features, CANDIDATES.features[[0, 2, 4]])
    assert labels.max_grade == 4


def test_qrels(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 d4 0\nq0 0 d2 3\nq0 0 d0 1\nq0 0 unknown 2\n\n")
    assert_labels(tmp_path / "qrels.txt")


def test_the_fields_of_tiangong_st_separated_by_spaces_and_tabs(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("0\t17\tq0 d2\t3\n0\t17\tq0 d0\t1\n1 18 q1\td4 0\n1 18 q1\td4 0\n")
    assert_labels(tmp_path / "labels.txt")


def test_a_table(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("query_id,doc_id,label\nq0,d2,3\nq0,d0,1\nq1,d4,0\n")
    assert_labels(tmp_path / "labels.csv")


def test_expert_labels_of_baidu_have_the_features_of_the_log(tmp_path: Path) -> None:
    log, _ = import_log_with_report(write_part(tmp_path / "part-0_split-0.feather"), format="baidu-ultr-uva")
    labels = read_labels(write_part(tmp_path / "validation.feather", label=True), log.candidates)
    assert labels.candidates.n_features == log.candidates.n_features
    assert labels.candidates.feature_names is not None
    assert labels.candidates.feature_names.tolist()[:12] == list(CLASSICAL)
    # The same documents: in this look-alike, those of the log.
    np.testing.assert_array_equal(labels.candidates.features, log.candidates.features)
    assert labels.candidates.document_ids is not None
    assert labels.relevance.tolist() == [int(name[1:]) % 5 for name in labels.candidates.document_ids]


def test_labels_without_the_features_of_the_log_are_refused(tmp_path: Path) -> None:
    log, _ = import_log_with_report(write_part(tmp_path / "part-0_split-0.feather"), format="baidu-ultr-uva")
    labels = write_part(tmp_path / "validation.feather", embedding=False, label=True)
    with pytest.raises(InputError, match="columns missing: bert_0"):
        read_labels(labels, log.candidates)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "q0 d0\n", "a.txt:1: expected 'query 0 document grade'"),
        ("a.txt", "\n", "found an empty file"),
        ("a.txt", "q0 0 d0 good\n", "expected whole numbers from 0 up as labels, found 1 others"),
        ("a.txt", "q0 0 d0 -1\n", "expected whole numbers"),
        ("a.txt", "x 0 d0 1\n", "none of its 1 labelled documents is in the log"),
        ("a.csv", "query_id,doc_id,grade\nq0,d0,1\n", "columns missing: label"),
    ],
)
def test_bad_labels_are_one_line(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_labels(tmp_path / name, CANDIDATES)
    assert len(error.value.problems) == 1
