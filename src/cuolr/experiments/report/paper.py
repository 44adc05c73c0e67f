"""The paper's numbers (Zhang et al., NeurIPS 2023, tables 1 and 2 and the appendix), to print beside ours."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cuolr.experiments.spec import Logging

NUMBERS = Path(__file__).parent / "paper_numbers.csv"
DATASETS = {"yahoo-set1": "Yahoo", "mslr-web10k": "WEB10K"}
# Has LOGGING and ORACLE on both data sets at every cutoff.
REFERENCE_TABLE = "appendix_click_models"
# Its rows are the logging policies of one method; all other tables use the first.
LOGGING_TABLE, LOGGING_TABLE_METHOD, USUAL_LOGGING = "logging_policy_quality", "CUOLR(CQL)", "por=1%"


@dataclass(frozen=True)
class Place:
    """Where a number of the paper is.

    Attributes:
        dataset: One of `DATASETS`.
        click_model: Its registered name; "" for LOGGING and ORACLE.
        method: As the paper names it.
        measure: Such as `ndcg@10`.
        logging: The logging policy, as the paper names it.
    """

    dataset: str
    click_model: str
    method: str
    measure: str
    logging: str = USUAL_LOGGING


@dataclass(frozen=True)
class PaperNumber:
    """A number of the paper, and the letters of the notes on it."""

    value: float
    marks: str = ""


@dataclass(frozen=True)
class Note:
    """A remark on the paper's tables.

    Attributes:
        mark: A letter.
        text: A sentence or two.
        methods: The rows that it concerns.
        places: The numbers that it concerns, if it is about single numbers.
    """

    mark: str
    text: str
    methods: tuple[str, ...]
    places: tuple[Place, ...] = ()


_ORACLE = Place("yahoo-set1", "", "ORACLE", "err@10")
_POS_PREDOC = Place("yahoo-set1", "pbm", "POS+PREDOC", "err@5")
_LOST = tuple(Place("mslr-web10k", model, "CUOLR(CQL)", "err@10") for model in ("cascade", "dcm"))
_AS_SAC = tuple(
    Place("yahoo-set1", model, "ATTENTION", f"{measure}@{k}")
    for model in ("pbm", "cascade")
    for measure in ("ndcg", "err")
    for k in (3, 5, 10)
)

# Where the tables contradict each other, the number that is consistent with the others.
CORRECTED: Mapping[Place, float] = {_ORACLE: 0.486, _POS_PREDOC: 0.440}

NOTES = (
    Note(
        "a",
        "The paper reports an ERR@10 of .476 for ORACLE on Yahoo in table 1, and .486 elsewhere; .486 is used here.",
        ("LOGGING", "ORACLE"),
        (_ORACLE,),
    ),
    Note(
        "b",
        "The paper's method does not win every cell: on WEB10K, CM-IPW has an ERR@10 of .304 against .301 under "
        "CASCADE, and .304 against .300 under DCM.",
        ("CUOLR(CQL)", "CUOLR(SAC)", "CM-IPW"),
        _LOST,
    ),
    Note(
        "c",
        "The paper reports an ERR@5 of .460 for POS+PREDOC on Yahoo under PBM in the appendix, above its ERR@10 of "
        ".456; table 2 has .440, which is used here.",
        ("POS+PREDOC",),
        (_POS_PREDOC,),
    ),
    Note(
        "d",
        "The paper's ATTENTION rows on Yahoo under PBM and CASCADE are labelled CQL, but match the rows of SAC.",
        ("ATTENTION",),
        _AS_SAC,
    ),
)


def paper_number(place: Place, tables: Sequence[str]) -> PaperNumber | None:
    """The paper's number: from the first of these tables that has it, corrected where the tables disagree.

    >>> paper_number(Place("yahoo-set1", "", "ORACLE", "err@10"), ["table1_click_models"])
    PaperNumber(value=0.486, marks='a')
    """
    for table in tables:
        if (value := _numbers().get((table, place))) is not None:
            return PaperNumber(CORRECTED.get(place, value), "".join(n.mark for n in NOTES if place in n.places))
    return None


def paper_gap_closed(place: Place, tables: Sequence[str]) -> float | None:
    """(method − LOGGING) / (ORACLE − LOGGING) by the paper's numbers; None if it lacks one of them."""
    if place.logging != USUAL_LOGGING:
        return None
    references = [Place(place.dataset, "", name, place.measure) for name in ("LOGGING", "ORACLE")]
    method, logging, oracle = (
        paper_number(place, tables),
        *(paper_number(reference, [REFERENCE_TABLE]) for reference in references),
    )
    if method is None or logging is None or oracle is None:
        return None
    return (method.value - logging.value) / (oracle.value - logging.value)


def paper_logging(logging: Logging) -> str:
    """The paper's name of a logging policy.

    >>> paper_logging(Logging()), paper_logging(Logging(fraction=0.0001)), paper_logging(Logging("random"))
    ('por=1%', 'por=0.01%', 'rand')
    """
    return "rand" if logging.name == "random" else f"por={100 * logging.fraction:g}%"


def notes_on(methods: Sequence[str]) -> list[Note]:
    """The notes that concern any of these methods of the paper."""
    return [note for note in NOTES if set(note.methods) & set(methods)]


@cache
def _numbers() -> dict[tuple[str, Place], float]:
    with NUMBERS.open(encoding="utf-8", newline="") as file:
        return {(row["table"], _place(row)): float(row["value"]) for row in csv.DictReader(file)}


def _place(row: Mapping[str, str]) -> Place:
    # The paper spells one method in two ways.
    method = row["method"].replace(" + ", "+")
    measure = f"{row['measure']}@{row['k']}"
    if row["table"] == LOGGING_TABLE:
        return Place(row["dataset"], row["click_model"], LOGGING_TABLE_METHOD, measure, method)
    return Place(row["dataset"], row["click_model"], method, measure)
