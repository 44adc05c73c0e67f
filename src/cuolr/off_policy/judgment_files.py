"""Judgments as files, in the forms that search tools read."""

import json
from pathlib import Path
from typing import Any, Literal

import polars as pl

from cuolr.data.spreadsheet_text import without_formulas
from cuolr.data.tables import write_errors
from cuolr.errors import InputError
from cuolr.files import atomic_file, check_suffix

JudgmentFormat = Literal["table", "workbench", "quepid", "qrels"]
# The format of a file whose name has this ending, where none is given.
FORMAT_OF_SUFFIX: dict[str, JudgmentFormat] = {
    ".parquet": "table",
    ".pq": "table",
    ".csv": "table",
    ".json": "workbench",
    ".qrels": "qrels",
    ".trec": "qrels",
}


def format_of(path: Path) -> JudgmentFormat:
    """The format that the name of a file says."""
    check_suffix(path, tuple(FORMAT_OF_SUFFIX))
    return FORMAT_OF_SUFFIX[path.suffix.lower()]


def topics_file(path: Path) -> Path:
    """Where the queries of a qrels file are that needs numbers for them."""
    return path.with_name(f"{path.name}.topics.tsv")


def needs_topics(table: pl.DataFrame) -> bool:
    """Whether a query has white space in it, which no field of a TREC file may have."""
    return bool(table["query_id"].str.contains(r"\s").any())


def write_judgments(path: Path, table: pl.DataFrame, file_format: JudgmentFormat) -> None:
    """Write judgments. All or nothing.

    Args:
        path: Its folder is made if need be.
        table: As `judgments` returns it; for qrels, with whole numbers as ratings.
        file_format: `table`: all columns, as CSV or, with the suffix .parquet, Parquet. `workbench`: the request that
            imports judgments into the Search Relevance Workbench of OpenSearch. `quepid`: CSV with query, docid,
            rating. `qrels`: TREC; queries with white space are numbered, and `topics_file` has their texts.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if file_format == "qrels":
        _write_qrels(path, table)
        return
    with write_errors(path), atomic_file(path) as unfinished:
        if file_format == "workbench":
            unfinished.write_text(json.dumps(_workbench(path.stem, table), indent=2) + "\n", encoding="utf-8")
        elif file_format == "quepid":
            columns = table.select(query="query_id", docid="doc_id", rating=_plain(table["rating"]))
            without_formulas(columns).write_csv(unfinished)
        elif path.suffix.lower() in (".parquet", ".pq"):
            table.write_parquet(unfinished)
        else:
            without_formulas(table).write_csv(unfinished)


def _workbench(name: str, table: pl.DataFrame) -> dict[str, Any]:
    """The body of `PUT _plugins/_search_relevance/judgments`."""
    queries = [
        {
            "query": query,
            "ratings": [
                {"docId": document, "rating": rating}
                for document, rating in rows.select("doc_id", "rating").iter_rows()
            ],
        }
        for (query,), rows in table.group_by("query_id", maintain_order=True)
    ]
    return {"name": name, "type": "IMPORT_JUDGMENT", "judgmentRatings": queries}


def _write_qrels(path: Path, table: pl.DataFrame) -> None:
    if (table["rating"] != table["rating"].round()).any():
        raise InputError(f"{path}: qrels hold whole numbers; choose a scale of grades, 0-3 or 0-4")
    spaced = table.filter(pl.col("doc_id").str.contains(r"\s"))
    if len(spaced):
        raise InputError(f"{path}: a TREC file cannot hold spaces, found doc_id '{spaced['doc_id'][0]}'")
    lines = table.select("query_id", pl.lit(0).alias("iteration"), "doc_id", pl.col("rating").cast(pl.Int64))
    if needs_topics(table):
        queries = table.select("query_id").unique(maintain_order=True).with_row_index("number", offset=1)
        topics = topics_file(path)
        with write_errors(topics), atomic_file(topics) as unfinished:
            text = pl.col("query_id").str.replace_all(r"\s+", " ")
            without_formulas(queries.select("number", text)).write_csv(
                unfinished, separator="\t", include_header=False, quote_style="never"
            )
        numbers = lines.join(queries, on="query_id", how="left", maintain_order="left")["number"].cast(pl.String)
        lines = lines.with_columns(query_id=numbers)
    with write_errors(path), atomic_file(path) as unfinished:
        lines.write_csv(unfinished, separator=" ", include_header=False, quote_style="never")


def _plain(ratings: pl.Series) -> pl.Series:
    """Grades as 3, not 3.0."""
    return ratings.cast(pl.Int64) if (ratings == ratings.round()).all() else ratings
