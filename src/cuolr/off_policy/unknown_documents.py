"""The change of reward if documents that the log says nothing about are the worst for a policy, and the best."""

from collections.abc import Iterator

import numpy as np

from cuolr.off_policy.compared_lists import ComparedLists, CountedDocuments, CountedLists
from cuolr.off_policy.heavy_tails import heavy_tailed_interval
from cuolr.off_policy.users.fitted_users import UserResponse
from cuolr.types import Bools, Doubles

# Clicks from which the rate of a document counts as its attractiveness, for the best case.
ENOUGH_CLICKS = 10.0
# A document that at most this share of its query's sessions shows is hardly shown.
HARDLY_SHOWN = 0.1


def worst_and_best_change(compared: ComparedLists, response: UserResponse) -> Iterator[float]:
    """The change of reward in the cases that may be the worst for the policy, and the best.

    Documents are as bad, or as good, as can be: as good as the best document of the log, as bad as
    `least_attractiveness`. What production earned is logged, so only the policy's documents vary. Compared with another
    policy, documents of that one only are the other way round, and 0 if they are bad; those of both sides either.
    """
    enough = response.rates.known & (compared.clicks >= ENOUGH_CLICKS)
    highest = min(float(response.rates.attractiveness[enough].max()), 1.0) if enough.any() else 1.0
    unknown = ~response.rates.known
    least = least_attractiveness(compared, response)
    if compared.baseline is compared.logged:
        production = compared.by_query(compared.baseline, response).sum()
        for of_policy in (least, highest):
            alpha = np.where(unknown, of_policy, response.rates.attractiveness)
            yield float(compared.by_query(compared.target, response, alpha).sum() - production)
        return
    in_target, in_baseline = (_contains(lists, len(unknown)) for lists in (compared.target, compared.baseline))
    for of_target, of_baseline in ((least, highest), (highest, 0.0)):
        for of_both in (least, highest):
            alpha = np.where(unknown & in_target & in_baseline, of_both, response.rates.attractiveness)
            alpha = np.where(unknown & in_target & ~in_baseline, of_target, alpha)
            alpha = np.where(unknown & in_baseline & ~in_target, of_baseline, alpha)
            yield compared.total_change(response, alpha)


def least_attractiveness(compared: ComparedLists, response: UserResponse) -> Doubles:
    """[P] how attractive a document of the policy's lists is at least, if the log says too little about it.

    What is nearest to documents that a logging policy does not show are those that it hardly shows. Of the policy's
    documents, so that a policy that chooses bad ones is told by those of its bad ones that were shown: the lower end of
    the 95 % interval, over queries, of their clicks per examination. A document that was shown too seldom to be known
    is one of them. One that was never shown is less attractive by the share of never shown ones among the documents of
    its query that are hardly or never shown: the more of them there are, the less does the logging policy shade off,
    and the more does it exclude. If the log shows the same documents in all sessions of a query, the worst case is 0.
    """
    rates, queries = response.rates, compared.n_queries
    shown, query = compared.logged.sessions_of_pairs(len(rates.known)), compared.query_of_pair
    of_query = compared.logged.sessions_of_queries(queries)
    in_target = _contains(compared.target, len(rates.known))
    hardly = (shown > 0) & (shown <= HARDLY_SHOWN * of_query[query])
    of_target = hardly & in_target
    clicks, examinations = (
        np.bincount(query[of_target], weights=of_pairs[of_target], minlength=queries).astype(np.float64)
        for of_pairs in (rates.clicks, rates.examinations)
    )
    low = heavy_tailed_interval(clicks, examinations)[1][0]
    number, never = (np.bincount(query[of], minlength=queries) for of in (hardly, shown == 0))
    shading_off = (number / np.maximum(number + never, 1))[query]
    least: Doubles = min(max(low, 0.0), 1.0) * np.where(shown > 0, 1.0, shading_off)
    return least


def _contains(lists: CountedLists | CountedDocuments, pairs: int) -> Bools:
    """[P] whether one of the lists has the pair."""
    return lists.sessions_of_pairs(pairs) > 0
