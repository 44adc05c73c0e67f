"""The click models once more, as plain loops over one session: slow, and easy to compare with their papers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Session = tuple[list[bool], list[bool]]


def one_session(name: str, model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    """Clicks and examination of one list without padding."""
    assert name in RULES, f"no plain session for click model '{name}': write one here"
    return RULES[name](model, relevance, uniforms)


def _attractiveness(model: Any, relevance: float) -> float:
    return float(model.noise + (1 - model.noise) * relevance)


def _at(values: Sequence[float], position: int) -> float:
    return values[position] if position < len(values) else values[-1]


def _top_down(
    model: Any,
    relevance: Sequence[float],
    uniforms: Sequence[tuple[float, float]],
    go_on: Callable[[int, float, bool], float],
) -> Session:
    clicks, looks = [], []
    reading = True
    for position, (document, (for_attraction, for_examination)) in enumerate(zip(relevance, uniforms, strict=True)):
        looks.append(reading)
        clicked = reading and for_attraction < _attractiveness(model, document)
        clicks.append(clicked)
        reading = reading and for_examination < go_on(position, document, clicked)
    return clicks, looks


def _cascade(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    return _top_down(model, relevance, uniforms, lambda position, document, clicked: 0 if clicked else 1)


def _dcm(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    def go_on(position: int, document: float, clicked: bool) -> float:
        return float(_at(model.continuation, position) ** model.eta) if clicked else 1.0

    return _top_down(model, relevance, uniforms, go_on)


def _ccm(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    def go_on(position: int, document: float, clicked: bool) -> float:
        if not clicked:
            return float(model.continuation_after_skip)
        r = _attractiveness(model, document) if model.relevance_is_attractiveness else document
        return float(model.continuation_after_irrelevant * (1 - r) + model.continuation_after_relevant * r)

    return _top_down(model, relevance, uniforms, go_on)


def _sdbn(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    def go_on(position: int, document: float, clicked: bool) -> float:
        return float(1 - model.satisfaction * document) if clicked else 1.0

    return _top_down(model, relevance, uniforms, go_on)


def _dbn(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    def go_on(position: int, document: float, clicked: bool) -> float:
        unsatisfied = 1 - model.satisfaction * document if clicked else 1.0
        return float(unsatisfied * model.perseverance)

    return _top_down(model, relevance, uniforms, go_on)


def _pbm(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    clicks, looks = [], []
    for position, (document, (for_attraction, for_examination)) in enumerate(zip(relevance, uniforms, strict=True)):
        looked = for_examination < _at(model.examination, position) ** model.eta
        looks.append(looked)
        clicks.append(looked and for_attraction < _attractiveness(model, document))
    return clicks, looks


def _trust(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    clicks, looks = [], []
    for position, (document, (for_attraction, for_examination)) in enumerate(zip(relevance, uniforms, strict=True)):
        looked = for_examination < _at(model.examination, position) ** model.eta
        relevant = _attractiveness(model, document)
        click = _at(model.click_relevant, position) * relevant + _at(model.click_irrelevant, position) * (1 - relevant)
        looks.append(looked)
        clicks.append(looked and for_attraction < click)
    return clicks, looks


def _perfect(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    clicks = [
        for_attraction < _attractiveness(model, document)
        for document, (for_attraction, _) in zip(relevance, uniforms, strict=True)
    ]
    return clicks, [True] * len(clicks)


def _ubm(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    clicks, looks = [], []
    rows = len(model.examination)
    last_clicked_rank = 0
    for rank, (document, (for_attraction, for_examination)) in enumerate(zip(relevance, uniforms, strict=True), 1):
        row = model.examination[rank - 1] if rank <= rows else model.examination[-1]
        if last_clicked_rank == 0:
            chance = row[-1]
        elif rank <= rows:
            chance = row[rank - last_clicked_rank - 1]
        else:
            chance = row[min(rank - last_clicked_rank, rows - 1) - 1]
        looked = for_examination < chance**model.eta
        clicked = looked and for_attraction < _attractiveness(model, document)
        if clicked:
            last_clicked_rank = rank
        looks.append(looked)
        clicks.append(clicked)
    return clicks, looks


def _mixture(model: Any, relevance: Sequence[float], uniforms: Sequence[tuple[float, float]]) -> Session:
    (for_attraction, for_examination), *others = uniforms
    scaled = np.float32(for_examination) * np.float32(len(model.models))
    user = min(int(scaled), len(model.models) - 1)
    first = (for_attraction, float(scaled - np.float32(user)))
    return one_session(model.models[user], model.components[user], relevance, [first, *others])


RULES: dict[str, Callable[[Any, Sequence[float], Sequence[tuple[float, float]]], Session]] = {
    "cascade": _cascade,
    "ccm": _ccm,
    "dbn": _dbn,
    "dcm": _dcm,
    "mixture": _mixture,
    "pbm": _pbm,
    "perfect": _perfect,
    "sdbn": _sdbn,
    "trust": _trust,
    "ubm": _ubm,
}
