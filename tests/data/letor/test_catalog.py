import re
from pathlib import Path

import numpy as np
import pytest

from cuolr.data.letor.catalog import (
    check_counts,
    cut_validation,
    find_folds,
    find_info,
    find_source,
    load_source,
)
from cuolr.data.letor.published import CATALOGUE
from cuolr.data.letor.reader import read_letor
from cuolr.errors import InputError, InputWarning

NAMES_WITH_FOLDS = sorted(name for name, info in CATALOGUE.items() if info.folds)
NAMES_WITHOUT = sorted(name for name, info in CATALOGUE.items() if not info.folds and name != "folder")


def rows(n_features: int, queries: int = 3) -> str:
    features = " ".join(f"{j}:{j / 7}" for j in range(1, n_features + 1))
    return "".join(f"{i % 2} qid:{q} {features}\n" for q in range(queries) for i in range(2))


def make_split(folder: Path, name: str, n_features: int, queries: int = 3) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(rows(n_features, queries))


@pytest.mark.parametrize("name", NAMES_WITH_FOLDS)
def test_a_data_set_with_folds_is_found_by_its_name_and_read(tmp_path: Path, name: str) -> None:
    info = CATALOGUE[name]
    for fold in range(1, info.folds + 1):
        for split in ("train.txt", "vali.txt", "test.txt"):
            make_split(tmp_path / name.upper() / f"Fold{fold}", split, info.n_features or 1)
    source = find_source(tmp_path / name.upper(), fold=2)
    assert source.info is info
    assert source.fold == 2
    splits = load_source(source)
    assert list(splits) == ["train", "vali", "test"]
    assert {split.candidates.n_features for split in splits.values()} == {info.n_features}
    assert {split.max_grade for split in splits.values()} == {info.max_grade}


@pytest.mark.parametrize("name", NAMES_WITHOUT)
def test_a_data_set_without_folds_is_read(tmp_path: Path, name: str) -> None:
    info = CATALOGUE[name]
    splits = ["train.txt", *(["valid.txt"] if info.has_validation else []), "test.txt"]
    for split in splits:
        make_split(tmp_path, info.prefix + split, info.n_features or 1, queries=10)
    loaded = load_source(find_source(tmp_path, name=name))
    assert loaded["train"].candidates.n_queries == (10 if info.has_validation else 8)
    assert loaded["vali"].candidates.n_queries == (10 if info.has_validation else 2)


def test_yahoo_is_known_by_the_names_of_its_files(tmp_path: Path) -> None:
    for split in ("set1.train.txt", "set1.valid.txt", "set1.test.txt"):
        make_split(tmp_path, split, 700)
    assert find_source(tmp_path).info.name == "yahoo-set1"
    assert find_source(tmp_path).paths["vali"].name == "set1.valid.txt"


@pytest.mark.parametrize("vali", ["vali.txt", "valid.txt", "validationset.txt", "vali.txt.gz"])
def test_every_name_of_the_validation_part_is_found(tmp_path: Path, vali: str) -> None:
    for split in ("train.txt", vali, "test.txt"):
        make_split(tmp_path / "Fold1", split, 4)
    assert find_source(tmp_path).paths["vali"].name == vali


def test_files_may_lie_one_folder_deeper(tmp_path: Path) -> None:
    for split in ("trainingset.txt", "validationset.txt", "testset.txt"):
        for variant in ("Feature_null", "QueryLevelNorm"):
            make_split(tmp_path / "OHSUMED" / variant / "Fold1", split, 45)
    source = find_source(tmp_path / "OHSUMED")
    assert source.paths["train"] == tmp_path / "OHSUMED" / "QueryLevelNorm" / "Fold1" / "trainingset.txt"


def test_several_data_sets_in_a_folder_are_not_guessed_between(tmp_path: Path) -> None:
    for home in ("a", "b"):
        make_split(tmp_path / home, "train.txt", 2)
    with pytest.raises(InputError, match=r"expected one data set, found several; give one of .*a, .*b"):
        find_source(tmp_path)


def test_a_missing_split_says_what_is_missing_and_where_it_is_to_be_had(tmp_path: Path) -> None:
    make_split(tmp_path / "MQ2008" / "Fold1", "vali.txt", 46)
    with pytest.raises(InputError) as caught:
        find_source(tmp_path / "MQ2008")
    train, test = caught.value.problems
    assert "Fold1: expected train.txt (or trainingset.txt, or one of these gzipped), found none" in train
    assert "get LETOR 4.0 MQ2008 from https://" in train
    assert "expected test.txt" in test


def test_missing_folds_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder not found"):
        find_source(tmp_path / "absent")
    with pytest.raises(InputError, match=r"expected folders Fold1 to Fold5, found none; get MSLR-WEB10K from"):
        find_source(tmp_path, name="mslr-web10k")
    make_split(tmp_path / "Fold1", "train.txt", 2)
    make_split(tmp_path / "Fold1", "test.txt", 2)
    with pytest.raises(InputError, match="expected the folder Fold3, found folds 1"):
        find_source(tmp_path, fold=3)
    assert find_folds(tmp_path) == [1]


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=re.escape("unknown data set 'mq2009' (did you mean 'mq2008'?); known: folder")
    ):
        find_info(tmp_path, "mq2009")


def test_the_wrong_number_of_features_is_refused(tmp_path: Path) -> None:
    for split in ("train.txt", "test.txt"):
        make_split(tmp_path / "Fold1", split, 47)
    with pytest.raises(InputError, match=r"train.txt:1: expected a feature index from 1 to 46, found 47"):
        load_source(find_source(tmp_path, name="mq2008"))


def test_validation_is_cut_by_query_with_the_seed(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(rows(2, queries=50))
    train = read_letor(tmp_path / "train.txt")
    rest, validation = cut_validation(train, 0.2, seed=1)
    assert validation.candidates.n_queries == 10
    both = np.concatenate([rest.candidates.query_ids, validation.candidates.query_ids])
    assert sorted(both.tolist()) == sorted(train.candidates.query_ids.tolist())
    assert np.array_equal(cut_validation(train, 0.2, seed=1)[1].candidates.query_ids, validation.candidates.query_ids)
    assert not np.array_equal(
        cut_validation(train, 0.2, seed=2)[1].candidates.query_ids, validation.candidates.query_ids
    )


def test_too_few_queries_to_cut_from_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(rows(2, queries=1))
    with pytest.raises(InputError, match="expected at least 2 queries"):
        cut_validation(read_letor(tmp_path / "train.txt"), 0.2, seed=1)


def test_dense_files_of_too_few_features_are_refused(tmp_path: Path) -> None:
    for split, n_features in (("train.txt", 46), ("vali.txt", 46), ("test.txt", 45)):
        make_split(tmp_path / "Fold1", split, n_features)
    with pytest.raises(InputError, match=r"test.txt: expected 46 features in a row, found 45"):
        load_source(find_source(tmp_path, name="mq2008"))


def test_two_data_sets_of_one_folder_are_not_guessed_between(tmp_path: Path) -> None:
    for name in ("set1", "set2"):
        for split in ("train", "valid", "test"):
            make_split(tmp_path / "yahoo", f"{name}.{split}.txt", 700)
    for folder in (tmp_path, tmp_path / "yahoo"):
        with pytest.raises(InputError, match="found yahoo-set1 and yahoo-set2; choose one with dataset"):
            find_source(folder)
        assert find_source(folder, name="yahoo-set2").paths["vali"].name == "set2.valid.txt"


def test_a_missing_validation_part_is_told_where_there_should_be_one(tmp_path: Path) -> None:
    for split in ("train.txt", "test.txt"):
        make_split(tmp_path / "Fold1", split, 46, queries=10)
    with pytest.warns(InputWarning, match="no validation split; 20% of the training queries are used instead"):
        splits = load_source(find_source(tmp_path, name="mq2008"))
    assert splits["vali"].candidates.n_queries == 2


def test_an_incomplete_data_set_is_told(tmp_path: Path) -> None:
    for split in ("train.txt", "vali.txt", "test.txt"):
        make_split(tmp_path / "Fold1", split, 46)
    source = find_source(tmp_path, name="mq2008")
    note = check_counts(source, load_source(source))
    assert note is not None
    assert "expected 784 queries and 15,211 documents in LETOR 4.0 MQ2008, found 9 and 18" in note


def test_mq2008_is_complete(shared_data: Path) -> None:
    source = find_source(shared_data / "MQ2008", fold=5)
    assert source.info.name == "mq2008"
    assert check_counts(source, load_source(source)) is None


def test_the_mslr_sample_reads_as_any_folder_and_by_name(shared_data: Path) -> None:
    folder = shared_data / "mslr-web10k-sample"
    assert find_source(folder).info.name == "folder"
    splits = load_source(find_source(folder, name="mslr-web10k"))
    assert [split.candidates.n_documents for split in splits.values()] == [5_000, 1_063, 5_000]


def test_a_generated_data_set_says_its_scale(tmp_path: Path) -> None:
    for split in ("train.txt", "vali.txt", "test.txt"):
        make_split(tmp_path / "Fold1", split, 3)
    assert find_source(tmp_path).info.max_grade is None
    (tmp_path / "generated.json").write_text('{"max_grade": 7}')
    source = find_source(tmp_path)
    assert source.info.max_grade == 7
    assert {split.max_grade for split in load_source(source).values()} == {7}
    assert find_source(tmp_path, name="folder").info.max_grade == 7


@pytest.mark.parametrize(
    ("content", "problem"),
    [("{", "not valid JSON"), ("[" * 100_000, "not valid JSON"), ('{"max_grade": "4"}', "expected a whole number")],
)
def test_a_damaged_description_of_a_data_set_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    for split in ("train.txt", "vali.txt", "test.txt"):
        make_split(tmp_path / "Fold1", split, 3)
    (tmp_path / "generated.json").write_text(content)
    with pytest.raises(InputError, match=f"generated.json: .*{problem}"):
        find_source(tmp_path)
