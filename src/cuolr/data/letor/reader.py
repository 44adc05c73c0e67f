"""LETOR and SVMlight files, as text or gzip: reading, with checks, and writing."""

import gzip
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.data.letor.fast_rows import parse_block
from cuolr.data.letor.grouping import document_ids_of, group, group_file, read_groups
from cuolr.data.letor.rows import MAX_PROBLEMS, Block, RowLayout, fits_memory
from cuolr.data.line_blocks import blocks_of_lines
from cuolr.data.tables import is_table
from cuolr.errors import InputError, InputWarning
from cuolr.files import atomic_file, require_file
from cuolr.progress import Progress, no_progress
from cuolr.types import Candidates, Floats, RankingDataset

BLOCK_BYTES = 4 << 20
PARTS_AT_ONCE = 3
# Filled up to the features of a model, a file has at most so many times its values, beyond 16 million.
MAX_FILLED_UP, FREE_VALUES = 64, 1 << 24

# Incremented when the same file would give different arrays, to invalidate older caches.
READER_VERSION = 1


@dataclass(frozen=True)
class LetorOptions:
    """How to read a file.

    Attributes:
        zero_based: Whether feature indices start at 0 instead of 1.
        missing: Replacement for `NULL` or the largest double (1.797e308): 0, or the feature's minimum in the file.
        n_features: The number of features, if known. A higher index is then an error, and so is a dense file with fewer
            features.
    """

    zero_based: bool = False
    missing: Literal["zero", "minimum"] = "zero"
    n_features: int | None = None


@dataclass(frozen=True)
class LetorFile:
    """The content of one file.

    Attributes:
        candidates: The documents by query.
        relevance: [n_documents] grades.
        dense: Whether each row lists every feature; in a sparse file the last features may not occur.
        note: A warning about rows that were reordered.
    """

    candidates: Candidates
    relevance: npt.NDArray[np.int8]
    dense: bool
    note: str | None = None

    def as_dataset(self, max_grade: int | None = None) -> RankingDataset:
        """A data set with grades up to `max_grade`; None = the highest that occurs."""
        return RankingDataset(self.candidates, self.relevance, max_grade or self.highest_grade)

    def warn(self, path: Path) -> None:
        """Issue the note as a warning, if there is one."""
        if self.note is not None:
            warnings.warn(f"{path}: {self.note}", InputWarning, stacklevel=3)

    @property
    def highest_grade(self) -> int:
        """The highest grade that occurs, at least 1."""
        return max(1, int(self.relevance.max()))


def read_letor(
    path: Path | str, options: LetorOptions = LetorOptions(), max_grade: int | None = None
) -> RankingDataset:
    """Read one file.

    A row is `<grade> qid:<id> <index>:<value> … # comment`; omitted features are 0. If rows have no `qid`, a file of
    the same name plus `.query` beside it gives the number of rows of each query in turn. Rows of a query that are not
    consecutive are grouped, with a warning. The document id is taken from a comment such as
    `docid = GX008-86-4444840`, or from a comment of a single word.

    Args:
        path: Text or gzip.
        options: How to read it.
        max_grade: The highest grade of the data set's scale; None = the highest that occurs.

    Raises:
        InputError: The first 20 problems of the file, each with its line.
    """
    return read_file(Path(path), options).as_dataset(max_grade)


def read_file(path: Path, options: LetorOptions = LetorOptions(), progress: Progress | None = None) -> LetorFile:
    """Read one file as `read_letor` does; the result also tells whether it is dense."""
    blocks: list[Block] = []
    problems: list[str] = []
    layout: RowLayout | None = None
    text_bytes = 0
    require_file(path)
    try:
        for part in _parsed_parts(path, options, progress):
            block, bad_lines = part.parsed.result()
            problems += [f"{path}:{part.first_line + number}: {problem}" for number, problem in bad_lines]
            if len(problems) >= MAX_PROBLEMS:
                break
            blocks.append(block)
            text_bytes += part.text_bytes
            layout = part.layout
    except InputError as damage:
        problems += damage.problems
    if problems:
        if is_table(path) and path.is_file():
            raise InputError(f"{path}: expected LETOR, rows '<grade> qid:<id> <index>:<value> …', found a table")
        raise InputError(problems[:MAX_PROBLEMS])
    if layout is None or not sum(len(block.grades) for block in blocks):
        raise InputError(f"{path}: expected at least one row '<grade> qid:<id> <index>:<value> …', found none")
    n_rows, width = sum(len(block.grades) for block in blocks), max(block.features.shape[1] for block in blocks)
    if not fits_memory(n_rows, width, text_bytes):
        raise InputError(f"{path}: too large for memory: {width} features in {n_rows} rows")
    file = _join(path, blocks, layout, options)
    file.warn(path)
    return file


def read_splits(
    paths: Mapping[str, Path],
    options: LetorOptions = LetorOptions(),
    max_grade: int | None = None,
    read: Callable[[Path, LetorOptions], LetorFile] = read_file,
) -> dict[str, RankingDataset]:
    """Read the splits of one data set, which must agree on the number of features and share one scale of grades.

    Args:
        paths: A file for each split.
        options: How to read them.
        max_grade: The highest grade of the scale; None = the highest that occurs in any of them.
        read: Reads one file, such as `Cache.read`.
    """
    files = {split: read(path, options) for split, path in paths.items()}
    counts = {split: file.candidates.n_features for split, file in files.items()}
    # The last features may not occur in a sparse file; any other difference is an error.
    least = max((counts[split] for split, file in files.items() if file.dense), default=max(counts.values()))
    width = max(counts.values())
    if width > least or any(file.dense and counts[split] != width for split, file in files.items()):
        listed = ", ".join(f"{paths[split]} has {count}" for split, count in counts.items())
        raise InputError(f"expected the same number of features in every split, found: {listed}")
    grade = max_grade or max(file.highest_grade for file in files.values())
    wide = {s: replace(file, candidates=_widened(file.candidates, width)) for s, file in files.items()}
    return {split: file.as_dataset(grade) for split, file in wide.items()}


def filled_up(candidates: Candidates, n_features: int, path: Path) -> Candidates:
    """Candidates with the `n_features` of a model: zeros for the last features if they do not occur in the file.

    LETOR omits zeros, so the last features may not occur in a file. It may also be the wrong file, so this warns.
    """
    found = candidates.n_features
    if found > n_features:
        raise InputError(f"{path}: has {found} features, but the model has {n_features}")
    if candidates.n_documents * n_features > max(FREE_VALUES, MAX_FILLED_UP * candidates.features.size):
        too_many = f"too many to set to 0 for {candidates.n_documents:,} documents; is it the right file?"
        raise InputError(f"{path}: has {found} features, but the model has {n_features:,}: {too_many}")
    if found < n_features:
        note = f"{path}: has {found} features, but the model has {n_features}; the missing ones are set to 0"
        warnings.warn(note, InputWarning, stacklevel=2)
    return _widened(candidates, n_features)


def write_letor(dataset: RankingDataset, path: Path | str, progress: Callable[[float], None] = no_progress) -> None:
    """Write a data set as dense LETOR text, gzipped if the name ends in `.gz`; the inverse of `read_letor`.

    Args:
        dataset: The data set.
        path: The file.
        progress: Called with the share of the documents that were written since the last call.
    """
    path = Path(path)
    candidates = dataset.candidates
    query = candidates.query_of_document
    with atomic_file(path) as unfinished, _open_to_write(unfinished, path.suffix == ".gz") as file:
        for start in range(0, candidates.n_documents, 10_000):
            rows = slice(start, start + 10_000)
            values = pl.DataFrame(np.ascontiguousarray(candidates.features[rows])).cast(pl.String)
            columns = {
                "grade": pl.Series(dataset.relevance[rows]).cast(pl.String),
                "query": "qid:" + pl.Series(candidates.query_ids[query[rows]]),
            }
            columns |= {f"feature {j}": f"{j + 1}:" + column for j, column in enumerate(values)}
            if candidates.document_ids is not None:
                columns["comment"] = "#docid = " + pl.Series(candidates.document_ids[rows])
            pl.DataFrame(columns).write_csv(file, separator=" ", include_header=False, quote_style="never")
            progress(len(values) / candidates.n_documents)


def _open_to_write(path: Path, compressed: bool) -> IO[bytes]:
    # mtime=0: the same data gives the same bytes.
    return gzip.GzipFile(path, "wb", mtime=0) if compressed else path.open("wb")  # type: ignore[return-value]


class _Part(NamedTuple):
    """Consecutive lines of a file."""

    first_line: int
    text_bytes: int
    layout: RowLayout
    parsed: Future[tuple[Block, list[tuple[int, str]]]]


def _parsed_parts(path: Path, options: LetorOptions, progress: Progress | None) -> Iterator[_Part]:
    """The parts of a file, in order; several are parsed at once, because one does not keep two cores busy."""
    layout: RowLayout | None = None
    under_way: deque[_Part] = deque()
    damage: InputError | None = None
    with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
        try:
            for first_line, text in blocks_of_lines(path, BLOCK_BYTES, progress):
                layout = layout or _find_layout(path, text, options)
                under_way.append(_Part(first_line, len(text), layout, pool.submit(parse_block, text, layout)))
                if len(under_way) > PARTS_AT_ONCE:
                    yield under_way.popleft()
        except InputError as error:
            damage = error
        yield from under_way
    if damage is not None:
        raise damage


def _find_layout(path: Path, text: bytes, options: LetorOptions) -> RowLayout:
    """The layout of the rows: with `qid`, unless the first row has none and there is a group file."""
    layout = RowLayout(0 if options.zero_based else 1, has_query=True, n_features=options.n_features)
    if not group_file(path).exists():
        return layout
    rows = (line.partition(b"#")[0].split() for line in text.split(b"\n"))
    first_row = next((fields for fields in rows if fields), [])
    return replace(layout, has_query=len(first_row) > 1 and first_row[1].startswith(b"qid:"))


def _join(path: Path, blocks: list[Block], layout: RowLayout, options: LetorOptions) -> LetorFile:
    grades = np.concatenate([block.grades for block in blocks])
    queries = pl.concat([block.queries for block in blocks])
    document_ids = document_ids_of(blocks)
    width = max(block.features.shape[1] for block in blocks)
    dense = all(block.dense and block.features.shape[1] == width for block in blocks)
    if not width or (dense and options.n_features not in (None, width)):
        raise InputError(f"{path}: expected {options.n_features or '1 or more'} features in a row, found {width}")
    width = options.n_features or width
    parts = [block.features for block in blocks]
    blocks.clear()
    features = _stack(parts, width)
    _fill_missing(features, options.missing)
    if layout.has_query:
        order, offsets, query_ids = group(queries)
    else:
        order, offsets, query_ids = None, *read_groups(path, len(grades))
    note = None
    if order is not None:
        features, grades = features[order], grades[order]
        document_ids = None if document_ids is None else document_ids[order]
        scattered = queries.rle().struct.field("value").value_counts().filter(pl.col("count") > 1)
        note = f"the rows of {len(scattered)} of {len(query_ids)} queries are not consecutive; grouped, order kept"
    candidates = Candidates(features, offsets, query_ids, document_ids)
    return LetorFile(candidates, grades.astype(np.int8), dense, note)


def _stack(parts: list[Floats], width: int) -> Floats:
    """All rows in one array of that width; each part is freed once copied, so that memory holds the data once."""
    features = np.zeros((sum(len(part) for part in parts), width), np.float32)
    end = len(features)
    while parts:
        part = parts.pop()
        features[end - len(part) : end, : part.shape[1]] = part
        end -= len(part)
    return features


def _widened(candidates: Candidates, width: int) -> Candidates:
    missing = width - candidates.n_features
    if not missing:
        return candidates
    return replace(candidates, features=np.pad(candidates.features, ((0, 0), (0, missing))))


def _fill_missing(features: Floats, missing: Literal["zero", "minimum"]) -> None:
    """Replace NaN in place, a column at a time."""
    for column in np.flatnonzero(np.isnan(features.sum(axis=0, dtype=np.float64))):  # which cannot overflow
        values = features[:, column]
        absent = np.isnan(values)
        known = values[~absent]
        values[absent] = known.min() if missing == "minimum" and known.size else 0
