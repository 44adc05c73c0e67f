from pathlib import Path

from cuolr.data.letor.catalog import find_source, load_source
from cuolr.data.letor.reader import read_letor
from cuolr.data.synthetic import generate
from tests.cli.conftest import Run


def test_the_files_hold_the_generated_data_to_the_bit(run: Run, tmp_path: Path) -> None:
    assert (
        run("generate", "tiny", "--out", tmp_path / "a", "--train", 30, "--vali", 5, "--test", 5, "--seed", 7).status
        == 0
    )
    written = read_letor(tmp_path / "a" / "Fold1" / "train.txt")
    expected = generate("tiny", 30, seed=7)
    assert written.candidates.features.tobytes() == expected.candidates.features.tobytes()
    assert written.relevance.tolist() == expected.relevance.tolist()


def test_a_folder_that_is_there_is_not_touched(run: Run, tiny: Path) -> None:
    before = (tiny / "Fold1" / "train.txt").read_bytes()
    result = run("generate", "tiny", "--out", tiny)
    assert result.status == 2
    assert "already exists" in result.err
    assert (tiny / "Fold1" / "train.txt").read_bytes() == before


def test_only_a_generated_folder_is_replaced(run: Run, tiny: Path, tmp_path: Path) -> None:
    few = ("--train", 3, "--vali", 1, "--test", 1)
    assert run("generate", "tiny", "--out", tiny, "--overwrite", *few).status == 0
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters").write_text("dear")
    (tmp_path / "file").write_text("dear")
    for precious in ("home", "file"):
        result = run("generate", "tiny", "--out", tmp_path / precious, "--overwrite", *few)
        assert result.status == 2
        assert "it is not replaced" in result.err
    assert (tmp_path / "home" / "letters").read_text() == (tmp_path / "file").read_text() == "dear"


def test_a_place_that_cannot_be_written_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("generate", "tiny", "--out", tmp_path / "file" / "x")
    assert result.status == 2
    assert len(result.err.splitlines()) == 1
    assert "Not a directory" in result.err


def test_an_unknown_preset_lists_the_known_ones(run: Run, tmp_path: Path) -> None:
    result = run("generate", "tiney", "--out", tmp_path / "x")
    assert result.status == 2
    assert "did you mean 'tiny'?" in result.err
    assert not list(tmp_path.glob("*x*"))


def test_the_scale_of_grades_survives_where_the_highest_grade_does_not_occur(run: Run, tmp_path: Path) -> None:
    few = ("--train", 1, "--vali", 1, "--test", 1, "--seed", 3)
    assert run("generate", "web10k-like", "--out", tmp_path / "few", *few).status == 0
    splits = load_source(find_source(tmp_path / "few"))
    assert max(int(split.relevance.max()) for split in splits.values()) < 4
    assert {split.max_grade for split in splits.values()} == {generate("web10k-like", 1, seed=1).max_grade} == {4}
