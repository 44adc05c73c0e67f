"""Small counts of click patterns, and the fitted click models once more: every value of every hidden variable."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.random_policy import UniformLogger
from cuolr.types import Candidates, RankingDataset

# The draw of a parameter: its name, its entry, and whether it was a success.
Draw = tuple[str, int, bool]
# A possible outcome at a position: its probability, the click, the state below, and the draws.
Outcome = tuple[float, bool, Any, list[Draw]]
Values = Mapping[str, Sequence[float]]
Shape = tuple[int, int]  # K and P


@dataclass
class Tally:
    """The probability of a click pattern, and the expected successes and trials of each parameter in it.

    Also the expected square of successes − trials · value.
    """

    probability: float = 0.0
    successes: dict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))
    trials: dict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))
    squares: dict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))

    def variance(self, parameter: str, entry: int, value: float) -> float:
        """Of successes − trials · value."""
        key = (parameter, entry)
        return self.squares.get(key, 0.0) - (self.successes.get(key, 0.0) - self.trials.get(key, 0.0) * value) ** 2


def every_outcome(name: str, shape: Shape, values: Values, documents: Sequence[int]) -> dict[tuple[bool, ...], Tally]:
    """All click patterns on a list of documents; −1 is a gap."""
    tallies: dict[tuple[bool, ...], Tally] = defaultdict(Tally)
    assert name in STEPS, f"no plain version of '{name}': write one here"

    def walk(k: int, state: Any, probability: float, clicks: tuple[bool, ...], draws: list[Draw]) -> None:
        if k == len(documents):
            tally = tallies[clicks]
            tally.probability += probability
            scores: dict[tuple[str, int], float] = defaultdict(float)
            for parameter, entry, success in draws:
                tally.trials[parameter, entry] += probability
                tally.successes[parameter, entry] += probability * success
                scores[parameter, entry] += success - values[parameter][entry]
            for key, score in scores.items():
                tally.squares[key] += probability * score**2
            return
        if documents[k] < 0:
            walk(k + 1, state, probability, (*clicks, False), draws)
            return
        below = any(document >= 0 for document in documents[k + 1 :])
        for chance, click, after, more in STEPS[name](shape, values, k, documents[k], state):
            # The first draw is about this document; the others say nothing where no document is below.
            told = more if below or name not in CONTINUING else more[:1]
            walk(k + 1, after, probability * chance, (*clicks, click), draws + told)

    walk(0, START.get(name), 1.0, (), [])
    for tally in tallies.values():
        for counts in (tally.successes, tally.trials, tally.squares):
            for key in counts:
                counts[key] /= tally.probability if tally.probability else 1
    return tallies


def _either(parameter: str, entry: int, values: Values) -> Iterator[tuple[float, bool, Draw]]:
    value = values[parameter][entry]
    yield value, True, (parameter, entry, True)
    yield 1 - value, False, (parameter, entry, False)


def _rate(entry: int, values: Values) -> Iterator[Outcome]:
    for chance, click, draw in _either("rate", entry, values):
        yield chance, click, None, [draw]


def _examined(cell: int, values: Values, k: int, document: int, state: Any) -> Iterator[Outcome]:
    for chance, examined, draw in _either("examination", cell, values):
        if not examined:
            yield chance, False, state, [draw]
            continue
        for attraction, click, second in _either("attractiveness", document, values):
            yield chance * attraction, click, k + 1 if click else state, [draw, second]


def _trust(shape: Shape, values: Values, k: int, document: int, state: Any) -> Iterator[Outcome]:
    for chance, relevant, draw in _either("attractiveness", document, values):
        for then, click, second in _either("click_relevant" if relevant else "click_irrelevant", k, values):
            yield chance * then, click, None, [draw, second]


def _cascade(shape: Shape, values: Values, k: int, document: int, reading: Any) -> Iterator[Outcome]:
    if not reading:
        yield 1.0, False, False, []
        return
    for chance, click, draw in _either("attractiveness", document, values):
        yield chance, click, not click, [draw]


def _dcm(shape: Shape, values: Values, k: int, document: int, reading: Any) -> Iterator[Outcome]:
    for chance, click, reading_on, draws in _cascade(shape, values, k, document, reading):
        if not click:
            yield chance, click, reading_on, draws
            continue
        for then, on, draw in _either("continuation", k, values):
            yield chance * then, True, on, [*draws, draw]


def _ccm(shape: Shape, values: Values, k: int, document: int, reading: Any) -> Iterator[Outcome]:
    for chance, click, _, draws in _cascade(shape, values, k, document, reading):
        if not reading:
            yield chance, click, False, draws
        elif not click:
            for then, on, draw in _either("continuation", 0, values):
                yield chance * then, False, on, [*draws, draw]
        else:
            for relevance, relevant, _ in _either("attractiveness", document, values):
                for then, on, draw in _either("continuation", 2 if relevant else 1, values):
                    hidden = ("attractiveness", document, relevant)
                    yield chance * relevance * then, True, on, [*draws, hidden, draw]


def _sdbn(shape: Shape, values: Values, k: int, document: int, reading: Any) -> Iterator[Outcome]:
    for chance, click, reading_on, draws in _cascade(shape, values, k, document, reading):
        if not click:
            yield chance, click, reading_on, draws
            continue
        for then, satisfied, draw in _either("satisfaction", document, values):
            yield chance * then, True, not satisfied, [*draws, draw]


def _dbn(shape: Shape, values: Values, k: int, document: int, reading: Any) -> Iterator[Outcome]:
    for chance, click, unsatisfied, draws in _sdbn(shape, values, k, document, reading):
        if not unsatisfied:
            yield chance, click, False, draws
            continue
        for then, on, draw in _either("perseverance", 0, values):
            yield chance * then, click, on, [*draws, draw]


STEPS: dict[str, Any] = {
    "ctr": lambda shape, values, k, document, state: _rate(0, values),
    "ctr-position": lambda shape, values, k, document, state: _rate(k, values),
    "ctr-document": lambda shape, values, k, document, state: _rate(document, values),
    "ctr-document-position": lambda shape, values, k, document, state: _rate(k * shape[1] + document, values),
    "pbm": lambda shape, values, k, document, state: _examined(k, values, k, document, state),
    "ubm": lambda shape, values, k, document, state: _examined(k * (shape[0] + 1) + state, values, k, document, state),
    "trust": _trust,
    "cascade": _cascade,
    "dcm": _dcm,
    "ccm": _ccm,
    "sdbn": _sdbn,
    "dbn": _dbn,
}
# The state at the top: whether the user reads on, or the last click.
START: dict[str, Any] = {"ubm": 0, "pbm": 0, "cascade": True, "dcm": True, "ccm": True, "sdbn": True, "dbn": True}
# Models whose draws after the first, of attraction, are about continuing.
CONTINUING = ("dcm", "ccm", "sdbn", "dbn")


def patterns_of(
    documents: Sequence[Sequence[int]], clicks: Sequence[Sequence[int]], count: Sequence[float] | None = None
) -> ClickPatterns:
    """Lists of the documents of one query; −1 = nothing shown."""
    shown = np.array(documents)
    number = int(shown.max()) + 1
    candidates = Candidates(np.zeros((number, 1), np.float32), np.array([0, number]), np.array(["q"]))
    return ClickPatterns(
        candidates=candidates,
        pairs=np.arange(number),
        query=np.zeros(len(shown), np.int64),
        documents=shown,
        clicks=np.array(clicks, np.bool_),
        count=np.ones(len(shown)) if count is None else np.array(count, np.float64),
        fold=np.arange(len(shown)) % 10,
    )


def dataset_of(queries: int = 40, seed: int = 1) -> RankingDataset:
    return generate("tiny", queries, seed=seed)


def random_log(name: str, sessions: int, k: int = 5, queries: int = 40, seed: int = 1, **parameters: Any) -> ClickLog:
    """Sessions of a click model on lists in random order, each session its own."""
    model = click_model(name, **parameters)
    return simulate(dataset_of(queries), UniformLogger(), model, sessions=sessions, k=k, seed=seed)
