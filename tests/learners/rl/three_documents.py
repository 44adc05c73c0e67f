"""A problem of three documents whose values are worked by hand.

The cascade model: a user goes down the list to the first click, so P(click) = attractiveness × what came above was not
attractive. Documents A, B and C attract with probability 0.8, 0.5 and 0.2, and the discount is 0.8.
"""

from itertools import permutations

import torch

from cuolr.training.batches import SessionBatch

DISCOUNT = 0.8
BEST_ORDER = "ABC"

# Q*(what is placed, what is placed next) = P(click) + 0.8 × the best that can follow.
BEST_VALUES = {
    # the last position: only the click
    ("AB", "C"): 0.2 * 0.5 * 0.2,
    ("BA", "C"): 0.5 * 0.2 * 0.2,
    ("AC", "B"): 0.2 * 0.8 * 0.5,
    ("CA", "B"): 0.8 * 0.2 * 0.5,
    ("BC", "A"): 0.5 * 0.8 * 0.8,
    ("CB", "A"): 0.8 * 0.5 * 0.8,
    # the second: one document is left to follow
    ("A", "B"): 0.2 * 0.5 + 0.8 * (0.2 * 0.5 * 0.2),  # 0.116
    ("A", "C"): 0.2 * 0.2 + 0.8 * (0.2 * 0.8 * 0.5),  # 0.104
    ("B", "A"): 0.5 * 0.8 + 0.8 * (0.5 * 0.2 * 0.2),  # 0.416
    ("B", "C"): 0.5 * 0.2 + 0.8 * (0.5 * 0.8 * 0.8),  # 0.356
    ("C", "A"): 0.8 * 0.8 + 0.8 * (0.8 * 0.2 * 0.5),  # 0.704
    ("C", "B"): 0.8 * 0.5 + 0.8 * (0.8 * 0.5 * 0.8),  # 0.656
    # the first: the better of the two above follows
    ("", "A"): 0.8 + 0.8 * 0.116,  # 0.8928
    ("", "B"): 0.5 + 0.8 * 0.416,  # 0.8328
    ("", "C"): 0.2 + 0.8 * 0.704,  # 0.7632
}

FEATURES = {"A": [1.0, 0.0, 0.0], "B": [0.0, 1.0, 0.0], "C": [0.0, 0.0, 1.0]}
ATTRACTIVENESS = {"A": 0.8, "B": 0.5, "C": 0.2}


def all_six_orders() -> SessionBatch:
    """Each order once, as a log gives it that is aggregated over very many sessions: with the mean click."""
    orders = list(permutations("ABC"))
    clicks = []
    for order in orders:
        not_clicked_above = 1.0
        for document in order:
            clicks.append(not_clicked_above * ATTRACTIVENESS[document])
            not_clicked_above *= 1 - ATTRACTIVENESS[document]
    return SessionBatch(
        features=torch.tensor([[FEATURES[document] for document in order] for order in orders]),
        rewards=torch.tensor(clicks).view(6, 3),
        where=torch.ones(6, 3, dtype=torch.bool),
        weight=torch.ones(6),
    )
