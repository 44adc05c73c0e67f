"""Team-draft interleaving of two models' lists, with the probability of each document."""

import numpy as np

from cuolr.off_policy.interleaving import team_draft
from cuolr.serving.batch_ranker import RankedRequest
from cuolr.serving.shown_lists import ShownList
from cuolr.types import Doubles, Ints


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
