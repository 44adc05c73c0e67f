from pathlib import Path

from cuolr.data.letor import read_letor
from cuolr.data.synthetic import generate
from tests.commands.conftest import Run


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
    assert "exists already" in result.err
    assert (tiny / "Fold1" / "train.txt").read_bytes() == before


def test_an_unknown_preset_lists_the_known_ones(run: Run, tmp_path: Path) -> None:
    result = run("generate", "tiney", "--out", tmp_path / "x")
    assert result.status == 2
    assert "did you mean 'tiny'?" in result.err
    assert not list(tmp_path.glob("*x*"))
