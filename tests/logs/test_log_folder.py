import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

import cuolr
from cuolr import files
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.data.letor.cache import Cache
from cuolr.data.letor.reader import write_letor
from cuolr.errors import InputError
from cuolr.files import unverified
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog, require_sessions
from cuolr.logs.log_folder import (
    concatenate,
    load_click_log,
    read_click_log,
    read_meta,
    save_click_log,
    write_click_log,
)
from cuolr.logs.session_files import one_each
from cuolr.policies.random_policy import RandomPolicy
from tests.data.small_data import assert_same_log, candidates_of, dataset_of, full_log, log_of, random_log

HALVES = (slice(0, 25), slice(25, 50))


@pytest.mark.parametrize(
    "log",
    [
        random_log(candidates_of(5, 2, 9), sessions=50, k=4),
        replace(full_log(), candidates=replace(full_log().candidates, document_ids=None)),
        full_log(),
        replace(full_log(), timestamp=np.arange(50).astype("datetime64[us]")),
        replace(full_log(), timestamp=np.linspace(0, 1, 50)),
        replace(full_log(), context={"returning": np.arange(50) % 2 == 0, "age": np.linspace(0, 1, 50)}),
        aggregate(full_log()),
        random_log(candidates_of(40_000), sessions=3, k=2),
    ],
    ids=[
        "plain",
        "no document ids",
        "all columns",
        "dates",
        "fractions of seconds",
        "numbers as context",
        "aggregated",
        "a long query",
    ],
)
def test_a_loaded_log_is_the_saved_one(log: ClickLog, tmp_path: Path) -> None:
    save_click_log(log, tmp_path / "log")
    assert_same_log(load_click_log(tmp_path / "log"), log)


def test_a_name_is_no_pattern(tmp_path: Path) -> None:
    logs = {"o [x]?*": full_log(), "o xyz": full_log().select(slice(0, 3)), "A?": full_log(), "A1": full_log()}
    for name, log in logs.items():
        save_click_log(log, tmp_path / name)
    for name, log in logs.items():
        assert_same_log(load_click_log(tmp_path / name), log)


def test_features_are_mapped_not_read(tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "log")
    features = load_click_log(tmp_path / "log").candidates.features
    assert isinstance(features, np.memmap)
    assert not features.flags.writeable


def test_reading_in_parts_gives_the_same_rows(tmp_path: Path) -> None:
    log = full_log()
    save_click_log(log, tmp_path / "log")
    parts = list(read_click_log(tmp_path / "log", rows_at_a_time=7))
    assert [len(part) for part in parts] == [7] * 7 + [1]
    assert_same_log(concatenate(parts, 50), log)


def test_the_file_does_not_show_where_a_part_ended(tmp_path: Path) -> None:
    log = full_log()
    save_click_log(log, tmp_path / "whole")
    write_click_log(tmp_path / "parts", (log.select(slice(i, i + 3)) for i in range(0, 50, 3)))
    for file in (tmp_path / "whole").iterdir():
        assert (tmp_path / "parts" / file.name).read_bytes() == file.read_bytes()


def test_the_meta_says_where_the_log_comes_from_and_is_no_part_of_it(tmp_path: Path) -> None:
    save_click_log(aggregate(full_log()), tmp_path / "log", source={"shop": "books"})
    meta = read_meta(tmp_path / "log")
    assert meta["source"] == {"shop": "books"}
    assert meta["sessions"] == 50
    assert meta["rows"] == len(load_click_log(tmp_path / "log"))
    assert meta["k"] == 4
    assert meta["aggregated"] is True
    assert meta["versions"]["cuolr"] == cuolr.__version__
    assert {field.name for field in fields(ClickLog)}.isdisjoint({"meta", "source", "relevance", "labels"})


def test_what_the_meta_says_of_the_click_model_changes_nothing_that_is_loaded(tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "log", source={"click_model": {"name": "pbm"}})
    before = load_click_log(tmp_path / "log")
    file = tmp_path / "log" / "meta.json"
    file.write_text(file.read_text().replace("pbm", "cascade"))
    with unverified():
        assert_same_log(load_click_log(tmp_path / "log"), before)


FILES = ("sessions.parquet", "features.npy", "offsets.npy", "query_ids.npy", "document_ids.npy", "feature_names.npy")


@pytest.mark.parametrize("name", [*FILES, "meta.json"])
def test_a_file_that_was_changed_is_refused_unless_the_reader_is_in_a_hurry(name: str, tmp_path: Path) -> None:
    log = full_log()
    names = np.array([f"f{i}" for i in range(log.candidates.n_features)])
    save_click_log(replace(log, candidates=replace(log.candidates, feature_names=names)), tmp_path / "log")
    file = tmp_path / "log" / name
    before = file.read_bytes()
    # The last character of a text, the highest bits of a number: whatever it is, it can be read.
    changed = before.replace(b'"rows": 50', b'"rows": 51') if name == "meta.json" else before[:-1] + b"\0"
    changed = changed if changed != before else before[:-4] + b"\1\0\0\0"
    file.write_bytes(changed if name != "sessions.parquet" else before + b"\0")
    with pytest.raises(InputError, match=rf"{re.escape(name)}: damaged: it does not match its hash; .* --no-verify$"):
        load_click_log(tmp_path / "log")
    file.write_bytes(before)
    assert len(load_click_log(tmp_path / "log")) == 50


def test_in_a_hurry_hashes_are_not_compared(tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "log")
    features = tmp_path / "log" / "features.npy"
    features.write_bytes(features.read_bytes()[:-4] + np.float32(7).tobytes())
    with unverified():
        assert load_click_log(tmp_path / "log").candidates.features[-1, -1] == 7


def test_an_array_that_came_later_is_refused(tmp_path: Path) -> None:
    log = full_log()
    save_click_log(replace(log, candidates=replace(log.candidates, document_ids=None)), tmp_path / "log")
    np.save(tmp_path / "log" / "document_ids.npy", np.array(["x"] * log.candidates.n_documents))
    with pytest.raises(InputError, match="does not match its hash"):
        load_click_log(tmp_path / "log")


@pytest.mark.parametrize("keep", [(), ("sha256",), ("files",)])
def test_only_a_log_from_before_there_were_hashes_may_lack_them(keep: tuple[str, ...], tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "log")
    file = tmp_path / "log" / "meta.json"
    meta = json.loads(file.read_text())
    old = {name: value for name, value in meta.items() if name not in ("sha256", "files") or name in keep}
    file.write_text(json.dumps(old))
    with pytest.raises(InputError, match="does not match its hash"):
        load_click_log(tmp_path / "log")
    file.write_text(json.dumps({**old, "format": 1}))
    if keep:
        with pytest.raises(InputError, match="does not match its hash"):
            load_click_log(tmp_path / "log")
    else:
        assert_same_log(load_click_log(tmp_path / "log"), full_log())


def test_files_are_compared_once_by_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_click_log(full_log(), tmp_path / "log")
    compared: list[str] = []
    read = files._bytes_of

    def noted(part: object) -> Iterator[bytes]:
        compared.extend([part.name] if isinstance(part, Path) else [])
        return read(part)

    monkeypatch.setattr(files, "_bytes_of", noted)
    for _ in range(2):
        load_click_log(tmp_path / "log")
        assert sorted(compared) == sorted(
            file.name for file in (tmp_path / "log").iterdir() if file.name != "meta.json"
        )


@pytest.mark.parametrize("name", ["sessions.parquet", "features.npy", "document_ids.npy", "meta.json"])
def test_no_link_leads_out_of_a_log(name: str, tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "log")
    (tmp_path / "log" / name).rename(tmp_path / "outside")
    (tmp_path / "log" / name).symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match=rf"log: '{re.escape(name)}' leads out of the folder"):
        load_click_log(tmp_path / "log")
    (tmp_path / "outside").rename(tmp_path / "log" / "inside")
    (tmp_path / "log" / name).unlink()
    (tmp_path / "log" / name).symlink_to("inside")
    assert_same_log(load_click_log(tmp_path / "log"), full_log())
    (tmp_path / "link").symlink_to(tmp_path / "log")
    assert_same_log(load_click_log(tmp_path / "link"), full_log())


def test_an_existing_log_is_replaced_only_when_asked(tmp_path: Path) -> None:
    first, second = random_log(candidates_of(3), 5, 2), random_log(candidates_of(4), 6, 3)
    save_click_log(first, tmp_path / "log")
    with pytest.raises(InputError, match="already exists"):
        save_click_log(second, tmp_path / "log")
    assert_same_log(load_click_log(tmp_path / "log"), first)
    save_click_log(second, tmp_path / "log", overwrite=True)
    assert_same_log(load_click_log(tmp_path / "log"), second)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_folder_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
    with pytest.raises(InputError, match=r"has no sessions\.parquet, so it is not replaced"):
        save_click_log(full_log(), tmp_path / "photos", overwrite=True)
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"meow"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_crash_while_writing_leaves_everything_as_it_was(overwrite: bool, tmp_path: Path) -> None:
    log = full_log()
    if overwrite:
        save_click_log(log, tmp_path / "log")

    def chunks() -> Iterator[ClickLog]:
        yield log
        raise MemoryError("in the middle")

    with pytest.raises(MemoryError, match="in the middle"):
        write_click_log(tmp_path / "log", chunks(), overwrite=overwrite)
    assert [path.name for path in tmp_path.iterdir()] == (["log"] if overwrite else [])
    if overwrite:
        assert_same_log(load_click_log(tmp_path / "log"), log)


def test_nothing_to_write_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected at least one session to write"):
        write_click_log(tmp_path / "log", [])
    assert not list(tmp_path.iterdir())


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of a folder, and every array and column in it, as bytes."""
    for file in sorted(file for file in folder.rglob("*") if not file.is_dir()):
        assert not file.is_symlink(), file
        yield file.name, file.read_bytes()
        if file.suffix == ".npy":
            yield file.name, np.load(file).tobytes()
        if file.suffix == ".parquet":
            for column in pl.read_parquet(file):
                yield f"{file.name}: {column.name}", column.explode().to_numpy().tobytes()


def places_of_labels(folder: Path, labels: npt.NDArray[np.int8]) -> list[str]:
    """Where the labels are found, as any type of number that could hold them."""
    types = (np.int8, np.int16, np.int32, np.int64, np.float32, np.float64)
    needles = [labels.astype(dtype).tobytes() for dtype in types]
    gains = 2.0**labels - 1
    needles += [(gains / scale).astype(dtype).tobytes() for dtype in (np.float32, np.float64) for scale in (1, 15)]
    return [name for name, content in contents(folder) if any(needle in content for needle in needles)]


def test_no_file_of_a_simulated_log_holds_a_label(tmp_path: Path) -> None:
    dataset = dataset_of(*[20] * 30)
    folder = tmp_path / "log"
    simulate_to(folder, Simulation(dataset, RandomPolicy(), PositionBasedModel(), 2_000, keep_examination=True))
    # A query's labels are twenty digits in an order that no other column has.
    queries = [dataset.relevance[i * 20 : i * 20 + 20] for i in range(30)]
    assert [place for labels in queries for place in places_of_labels(folder, labels)] == []
    shown = load_click_log(folder)
    labels_as_shown = dataset.relevance[dataset.candidates.offsets[shown.query, None] + shown.ranking]
    assert places_of_labels(folder, labels_as_shown[:20].ravel()) == []
    names = {name for name, _ in contents(folder)}
    assert names == {
        "features.npy",
        "offsets.npy",
        "query_ids.npy",
        "document_ids.npy",
        "meta.json",
        "sessions.parquet",
        *(f"sessions.parquet: {column}" for column in ("query", "ranking", "clicks", "examination")),
    }


def test_a_log_of_a_cached_data_set_shares_its_features_and_not_its_labels(tmp_path: Path) -> None:
    write_letor(dataset_of(*[20] * 30), tmp_path / "train.txt")
    dataset = Cache(tmp_path / "cache").read(tmp_path / "train.txt").as_dataset()
    simulate_to(tmp_path / "log", Simulation(dataset, RandomPolicy(), PositionBasedModel(), 100))
    features = tmp_path / "log" / "features.npy"
    assert any(features.samefile(file) for file in (tmp_path / "cache").rglob("features.npy"))
    assert places_of_labels(tmp_path / "cache", dataset.relevance)
    assert places_of_labels(tmp_path / "log", dataset.relevance[:20]) == []


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32])
def test_the_search_would_find_a_label(dtype: type[np.generic], tmp_path: Path) -> None:
    dataset = dataset_of(20)
    np.save(tmp_path / "extra.npy", dataset.relevance.astype(dtype))
    pl.DataFrame({"extra": dataset.relevance.astype(dtype)}).write_parquet(tmp_path / "extra.parquet")
    assert set(places_of_labels(tmp_path, dataset.relevance)) == {"extra.npy", "extra.parquet: extra"}


def test_a_learner_that_needs_sessions_refuses_an_aggregated_log() -> None:
    log = full_log()
    require_sessions(log, "cm-ipw")
    with pytest.raises(
        InputError,
        match=r"^cm-ipw needs the clicks of each session, but the rows of this log are means over several sessions",
    ):
        require_sessions(aggregate(log), "cm-ipw")


def test_selected_rows_keep_all_their_columns() -> None:
    log = full_log()
    chosen = log.select(np.array([4, 2]))
    assert chosen.columns.keys() == log.columns.keys()
    for name, values in chosen.columns.items():
        np.testing.assert_array_equal(values, log.columns[name][[4, 2]])


def test_texts_of_a_later_part_may_be_longer() -> None:
    log = full_log()
    device = np.array(["tv"] * 49 + ["refrigerator"])
    parts = [replace(log.select(rows), context={"device": np.array(device[rows].tolist())}) for rows in HALVES]
    assert concatenate(parts, 50).context["device"].tolist() == device.tolist()


def test_columns_that_are_absent_are_not_stored(tmp_path: Path) -> None:
    save_click_log(random_log(candidates_of(5), sessions=5, k=2), tmp_path / "log")
    assert pl.read_parquet(tmp_path / "log" / "sessions.parquet").columns == ["query", "ranking", "clicks"]


def test_a_log_knows_its_size() -> None:
    log = aggregate(log_of(candidates_of(3, 2), [0, 1, 1], [[2, 0], [1, -1], [1, -1]], [[0, 1], [1, 0], [0, 0]]))
    assert (len(log), log.k, log.sessions) == (2, 2, 3)
    assert log.where.tolist() == [[True, True], [True, False]]


def test_a_count_of_one_each_takes_no_memory() -> None:
    assert len(one_each(10**12)) == 10**12
