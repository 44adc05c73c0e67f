"""How the list to show is made from what a model ranks: as it is, randomised, or interleaved with another model's."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cuolr.errors import InputError
from cuolr.off_policy.interleaving import team_draft
from cuolr.registry import Registry
from cuolr.serving.batch_ranker import RankedRequest
from cuolr.types import Doubles, Ints

# Anything that randomises a list, by the name in `--randomise NAME:AMOUNT`.
RANDOMISATIONS: Registry[type["ListRandomisation"]] = Registry(
    "randomisation", package="cuolr.serving.randomisations", base="ListRandomisation"
)


@dataclass(frozen=True)
class ShownList:
    """The list of a request.

    Attributes:
        order: [k] indices of documents.
        propensity: [k] the probability of each document given those above it.
        team: [k] the name of the model that contributed each document; empty unless lists are interleaved.
    """

    order: Ints
    propensity: Doubles
    team: tuple[str, ...] = ()


def as_ranked(ranked: RankedRequest) -> ShownList:
    """The list of the model itself."""
    return ShownList(ranked.ranking, np.ones(len(ranked.ranking)))


class ListRandomisation(ABC):
    """Changes lists at random, with known probabilities.

    Attributes:
        needs_scores: Whether a model must give scores.
    """

    needs_scores: bool = False

    @classmethod
    @abstractmethod
    def parse(cls, amount: str) -> "ListRandomisation":
        """From what follows the name on the command line."""

    @abstractmethod
    def draw(self, ranked: RankedRequest, k: int, rng: np.random.Generator) -> ShownList:
        """A list of at most k documents.

        Args:
            ranked: The model's own list, and its scores.
            k: Length of the list.
            rng: Random numbers.
        """

    @property
    def loss_bound(self) -> float:
        """The share of the clicks that it can cost at most, whatever users do; 1 if there is no bound."""
        return 1.0


def parse_share(text: str, most: float = 1.0) -> float:
    """A share such as 5% or 0.05.

    >>> parse_share("5%"), parse_share("0.25")
    (0.05, 0.25)
    """
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share <= most:
        raise InputError(f"expected a share above 0 and up to {most:.0%}, such as 5% or 0.05, found '{text}'")
    return share


def parse_randomisation(text: str) -> ListRandomisation:
    """A randomisation from `NAME:AMOUNT`, such as `swap-neighbours:5%`."""
    name, colon, amount = text.partition(":")
    if not colon:
        raise InputError(f"expected NAME:AMOUNT, such as swap-neighbours:5% or plackett-luce:0.5, found '{text}'")
    return RANDOMISATIONS.get(name).parse(amount)


def interleave(a: RankedRequest, b: RankedRequest, names: tuple[str, str], rng: np.random.Generator) -> ShownList:
    """A list to which both models contribute in turn; a coin says which begins each round of two positions.

    Args:
        a: The list of the first model.
        b: That of the second, as long.
        names: Of the models.
        rng: Random numbers.
    """
    coins = rng.random((1, len(a.ranking))) < 0.5
    documents, team = team_draft(a.ranking[None], b.ranking[None], coins)
    order: Ints = documents[0]
    return ShownList(
        order,
        interleaving_propensity(a.ranking, b.ranking, order),
        tuple(names[0] if sign > 0 else names[1] for sign in team[0].tolist()),
    )


def interleaving_propensity(a: Ints, b: Ints, order: Ints) -> Doubles:
    """[K] the probability of each document given those above, over the coins.

    Where both models' best remaining documents are the same, it is certain. Where they differ, each comes first with
    probability 1/2, and which of them does tells who began the round, so that the second of the round is certain,
    unless the first was the same for both.

    Args:
        a: [K] the first model's list.
        b: [K] the second's.
        order: [K] an interleaved list.
    """
    propensity = np.ones(len(order))
    told = False
    for position in range(len(order)):
        above = set(order[:position].tolist())
        best = {next(int(document) for document in ranking if int(document) not in above) for ranking in (a, b)}
        second_of_round = position % 2 == 1
        if len(best) == 2 and not (second_of_round and told):
            propensity[position] = 0.5
        told = len(best) == 2
    return propensity
