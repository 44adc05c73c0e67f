"""Flags of commands that read features of documents from tables."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Annotated

import tyro

from cuolr.cli.options import LetorFlags
from cuolr.data.candidate_store import RECIPE, load_recipe
from cuolr.data.feature_options import FeatureOptions
from cuolr.data.feature_tables import FeatureTables
from cuolr.errors import InputError
from cuolr.logs.log_meta import META_FILE, check_log_files
from cuolr.policies.model_folder import SETTINGS_FILE, load_policy
from cuolr.types import FeatureRecipe

Columns = Annotated[tuple[str, ...], tyro.conf.arg(metavar="COLUMN"), tyro.conf.UseAppendAction]
NamedColumns = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=COLUMN"), tyro.conf.UseAppendAction]

# How the library says what to do about a column, and how the command does.
FLAGS: dict[re.Pattern[str], str | Callable[[re.Match[str]], str]] = {
    re.compile(r"(drop|allow|category)_columns=\['(.*?)'\]"): lambda found: f"--{found[1]}-column {quote(found[2])}",
    re.compile(r"columns={'(.*?)': '(.*?)'}"): lambda found: column_flag(found[1], found[2]),
    re.compile(r"reward='(.*?)'"): r"--reward \1",
    re.compile(r"^(reward|context): "): r"--\1: ",
    re.compile(r"^columns: "): "--column: ",
    re.compile(r"FeatureTables\(document=…\)"): "--document-features",
    re.compile(r"first_position=0"): "--first-position 0",
    re.compile(r"with k=N$"): "with --k N",
}


@dataclass(frozen=True)
class FeatureFlags:
    """Features of documents and queries.

    Attributes:
        features: The documents of each query: a table with query_id, doc_id and a column per feature, or LETOR with
            document ids after '#'. By default the candidates of a query are the documents that the log shows for it.
        document_features: Table of features of documents: doc_id and a column per feature.
        query_features: Table of features of queries: query_id and a column per feature.
        drop_column: Leave out this column.
        allow_column: Use this column although its name sounds like a relevance label.
        category_column: The numbers of this column are codes of categories.
        features_as: Folder of a log or a model. Columns become numbers as there, so that both can be used together.
    """

    features: Path | None = None
    document_features: Path | None = None
    query_features: Path | None = None
    drop_column: Columns = ()
    allow_column: Columns = ()
    category_column: Columns = ()
    features_as: Path | None = None

    @property
    def given(self) -> dict[str, str]:
        """Where the features come from, by flag."""
        names = ("features", "document_features", "query_features", "impression_features")
        return {name: str(getattr(self, name)) for name in names if getattr(self, name, None) is not None}

    def tables(self, impression: Sequence[str] = ()) -> FeatureTables:
        """As the importer takes them; it knows other names of ids."""
        return FeatureTables(
            self.features,
            self.document_features,
            self.query_features,
            tuple(impression),
            FeatureOptions(self.drop_column, self.allow_column, self.category_column),
            None if self.features_as is None else recipe_of(self.features_as),
        )


@dataclass(frozen=True)
class LogFeatureFlags(FeatureFlags):
    """Features of documents, queries and impressions.

    Attributes:
        impression_features: Columns of the log with features of a document when it was shown, separated by commas.
    """

    impression_features: Annotated[str | None, tyro.conf.arg(metavar="COLUMN,...")] = None

    def tables(self, impression: Sequence[str] = ()) -> FeatureTables:
        """As the importer takes them; it knows other names of ids."""
        named = [name.strip() for name in (self.impression_features or "").split(",")]
        return super().tables([name for name in named if name])


@dataclass(frozen=True)
class CandidateFlags:
    """How to read the documents to rank.

    Attributes:
        column: The table's name of an id column that is called otherwise, such as `doc_id=product_id`.
        document_features: Table of features of documents: doc_id and a column per feature.
        query_features: Table of features of queries: query_id and a column per feature.
        drop_column: Leave out this column.
        one_query: All documents are candidates of one query, as in a log of recommendations; query_id is not needed.
    """

    column: NamedColumns = ()
    document_features: Path | None = None
    query_features: Path | None = None
    drop_column: Columns = ()
    one_query: bool = False
    letor: LetorFlags = field(default_factory=LetorFlags)

    def tables(self, candidates: Path) -> FeatureTables:
        """The table of candidates, and those that are joined to it."""
        options = FeatureOptions(self.drop_column, columns=parse_columns(self.column), one_query=self.one_query)
        return FeatureTables(candidates, self.document_features, self.query_features, options=options)


def parse_columns(given: Sequence[str]) -> dict[str, str]:
    """Our names of columns, with those in the table."""
    columns = {}
    for text in given:
        name, _, column = text.partition("=")
        if not column:
            raise InputError(f"--column: expected NAME=COLUMN, such as doc_id=product_id, found '{text}'")
        columns[name] = column
    return columns


def recipe_of(folder: Path) -> FeatureRecipe:
    """The recipe of the features of a log or a model."""
    if (folder / SETTINGS_FILE).exists():
        recipe = load_policy(folder).recipe
    else:
        if (folder / META_FILE).exists():
            check_log_files(folder, [RECIPE])
        recipe = load_recipe(folder)
    if recipe is None:
        raise InputError(f"{folder}: has no recipe of features; expected a log or a model whose features have columns")
    return recipe


def column_flag(name: str, column: str) -> str:
    """How to say in a shell what the table calls a column."""
    return f"--column {name}={quote(column)}"


def with_flags(text: str) -> str:
    """A message of the library, with flags in place of parameters."""
    for parameter, flag in FLAGS.items():
        text = parameter.sub(flag, text)
    return text


@contextmanager
def flags_in_problems() -> Iterator[None]:
    """Name flags where the library names parameters."""
    try:
        yield
    except InputError as error:
        problems = [with_flags(problem) for problem in error.problems]
        if problems == error.problems:
            raise
        raise InputError(problems) from None
