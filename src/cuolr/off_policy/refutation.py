"""Whether logged lists that are like a policy's have fewer clicks than fitted users expect: no model needed."""

import numpy as np

from cuolr.off_policy.compared_lists import ComparedLists, CountedDocuments, CountedLists
from cuolr.off_policy.heavy_tails import heavy_tailed_interval
from cuolr.off_policy.intervals import UNKNOWN
from cuolr.off_policy.position_discount import discount_weights, weights_in_lists
from cuolr.off_policy.users.fitted_users import UserResponse
from cuolr.types import Doubles


def missed_towards_policy(compared: ComparedLists, users: UserResponse) -> tuple[float, tuple[float, float]]:
    """The reward that users miss on the way to the policy's lists, relative to the logged reward, with its interval.

    A list is the vector of its documents' exposures, 1 / log2(1 + position). On the line from the mean of a query's
    logged lists, a = 0, to the policy's list, a = 1, each logged list has a place a_i. The residual of list i is its
    logged reward per session minus what the users expect. Its slope in a_i, over all queries, is by how much they are
    wrong at the policy's lists, if they are wrong proportionally. 0 is expected if they are the users of the log;
    below 0, part of the gain is not there. The interval is over queries, and infinite if lists do not differ, or are
    not known.
    """
    logged = compared.logged
    if isinstance(logged, CountedDocuments) or logged.clicks is None:
        return 0.0, UNKNOWN
    place = _places(compared, logged)
    reward = compared.reward_of(logged.documents, np.where(logged.documents >= 0, logged.clicks, 0.0))
    residual = reward - logged.count * compared.of_lists(logged, users)
    of_query = [
        np.bincount(logged.query, weights=values, minlength=compared.n_queries).astype(np.float64)
        for values in (place * residual, place**2 * logged.count)
    ]
    there = of_query[1] > 0
    if not there.any():
        return 0.0, UNKNOWN
    slope, (low, high) = heavy_tailed_interval(of_query[0][there], of_query[1][there])
    scale = float(logged.count.sum()) / max(float(reward.sum()), 1e-300)
    return scale * slope, (scale * low, scale * high)


def _places(compared: ComparedLists, logged: CountedLists) -> Doubles:
    """[L] the place a of each logged list."""
    pairs = len(compared.query_of_pair)
    sessions = np.bincount(logged.query, weights=logged.count, minlength=compared.n_queries)[compared.query_of_pair]
    mean, policy = (_exposures(lists, pairs) / np.maximum(sessions, 1e-300) for lists in (logged, compared.target))
    change = policy - mean
    along, length = (
        np.bincount(compared.query_of_pair, weights=values, minlength=compared.n_queries)
        for values in (mean * change, change**2)
    )
    own = (_exposure(logged) * np.where(logged.documents >= 0, change[logged.documents], 0.0)).sum(axis=1)
    far = length[logged.query]
    places: Doubles = np.where(far > 1e-12, (own - along[logged.query]) / np.maximum(far, 1e-12), 0.0)
    return places


def _exposure(lists: CountedLists) -> Doubles:
    """[L, K] 1 / log2(1 + position)."""
    return weights_in_lists(lists.documents >= 0, discount_weights("dcg", lists.documents.shape[1]))


def _exposures(lists: CountedLists, pairs: int) -> Doubles:
    """[P] the exposure of each pair in all sessions."""
    where = lists.documents >= 0
    weights = (_exposure(lists) * lists.count[:, None])[where]
    return np.bincount(lists.documents[where], weights=weights, minlength=pairs).astype(np.float64)
