"""Stage 4: non-negative stacking on out-of-fold clicks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuolr.examination.conditional_likelihood import fit_weights, log_likelihood
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.rankers.base_ranker import ScoringRanker, scores_of
from cuolr.types import Doubles, Floats, Ints

# Number of sampled documents used to standardise each ranker's scores.
SCALE_DOCUMENTS = 5_000
# Documents whose features are copied at a time to be scored, at most twice as many.
DOCUMENTS_AT_A_TIME = 1 << 12
# Score differences up to this, relative to the size of the scores, are rounding.
ROUNDING = 1e-6
# Half the inverse variance of the normal prior on the weights, whose mean is 0.
PRIOR = 0.5
# Steps of a stacked ensemble at which it is validated without labels, before the first regular validation.
EARLY_VALIDATIONS = (10, 20, 30, 40)


@dataclass(frozen=True)
class Stack:
    """Rankers by kind and fold, with a weight for each kind.

    Rankers of one kind share the kind's weight, each in units of the standard deviation of its own scores.

    Attributes:
        kinds: For each kind one ranker per fold; one may serve several folds.
        weights: [kinds] the non-negative weight of each kind.
        scale: [kinds, folds] the inverse standard deviation of each ranker's scores; 0 = it does not discriminate.
        out_of_fold: [kinds, R, N] the scaled scores of each query by the rankers that were not trained on it.
    """

    kinds: Sequence[Sequence[ScoringRanker]]
    weights: Doubles
    scale: Doubles
    out_of_fold: Doubles

    def scores(self) -> Doubles:
        """[R, N] the weighted sum of the scores of each query by the rankers that were not trained on it."""
        total: Doubles = np.tensordot(self.weights, self.out_of_fold, axes=1)
        return total

    def clicks_explained(self, rates: ClickRates, held_out: ClickRates) -> float:
        """How well scores explain where clicks or rewards fall (`log_likelihood`), per click.

        Args:
            rates: The queries that it was stacked on, each scored by the rankers that were not trained on it.
            held_out: Queries that no ranker was trained on, scored by all rankers; maybe none.
        """
        scores, where = np.zeros(held_out.where.shape), held_out.where
        members = dict(self.members() if where.any() else ())
        scores_of_members = _scores(list(members), held_out.features, held_out.documents[where])
        for weight, scored in zip(members.values(), scores_of_members, strict=True):
            scores[where] += weight * scored
        total = log_likelihood(self.scores(), rates.rewards, rates.expected_examinations)
        total += log_likelihood(scores, held_out.rewards, held_out.expected_examinations)
        return total / max(float(rates.rewards.sum() + held_out.rewards.sum()), 1.0)

    def members(self) -> list[tuple[ScoringRanker, float]]:
        """Each ranker once, with its weight in the sum of scores."""
        shares = self.weights[:, None] * self.scale / self.scale.shape[1]
        members: dict[ScoringRanker, float] = {}
        for ranker, share in zip((ranker for kind in self.kinds for ranker in kind), shares.ravel(), strict=True):
            members[ranker] = members.get(ranker, 0.0) + float(share)
        return list(members.items())


def stack(kinds: Sequence[Sequence[ScoringRanker]], rates: ClickRates, fold: Ints, seed: int) -> Stack:
    """Stack rankers by the weights ≥ 0 that best explain where clicks or rewards fall (see `conditional_likelihood`).

    Each query is scored by the rankers that were not trained on its fold; the exposure is the expected examinations,
    which are not cross-fitted. If no ranker explains the clicks, all kinds get the same weight.

    Args:
        kinds: For each kind one ranker per fold.
        rates: R queries with their clicks.
        fold: [R] the fold of each query.
        seed: Seed of the sample of documents that gives the scale.
    """
    # The all-zero padding row is in the sample, so that the scores of a single document have a scale, too.
    scored = np.append(np.unique(rates.documents[rates.where]), len(rates.features) - 1)
    sample = scored[np.random.default_rng(seed).permutation(len(scored))[:SCALE_DOCUMENTS]]
    scale = _scale(kinds, rates.features[sample])
    out_of_fold = _out_of_fold_scores(kinds, scale, rates, fold)
    weights = fit_weights(out_of_fold, rates.rewards, rates.expected_examinations, PRIOR)
    return Stack(kinds, weights, scale, out_of_fold)


def _scale(kinds: Sequence[Sequence[ScoringRanker]], features: Floats) -> Doubles:
    """[kinds, folds] the inverse standard deviation of the scores of documents."""
    scores = np.array(scores_of([ranker for kind in kinds for ranker in kind], features))
    scores = scores.reshape(len(kinds), -1, len(features))
    spread, size = scores.std(axis=2), np.abs(scores).max(axis=2)
    # A ranker that does not discriminate outputs only rounding noise; do not amplify it.
    scale: Doubles = np.divide(1, spread, out=np.zeros_like(spread), where=spread > ROUNDING * size)
    return scale


def _scores(rankers: Sequence[ScoringRanker], features: Floats, documents: Ints) -> list[Doubles]:
    """[n] each, the scores of some rows of the features."""
    # The last part is not a small one: products of few rows round differently.
    ends = DOCUMENTS_AT_A_TIME * np.arange(1, len(documents) // DOCUMENTS_AT_A_TIME)
    parts = [scores_of(rankers, features[part]) for part in np.split(documents, ends)]
    return [np.concatenate(scores) for scores in zip(*parts, strict=True)]


def _out_of_fold_scores(
    kinds: Sequence[Sequence[ScoringRanker]], scale: Doubles, rates: ClickRates, fold: Ints
) -> Doubles:
    """[kinds, R, N] the scaled scores of each query by the rankers that were not trained on it."""
    scores = np.zeros((len(kinds), *rates.where.shape))
    for i in range(scale.shape[1]):
        rows = np.flatnonzero(fold == i)
        where = rates.where[rows]
        if not where.any():
            continue
        by_kind = _scores([kind[i] for kind in kinds], rates.features, rates.documents[rows][where])
        for k, unscaled in enumerate(by_kind):
            scored = np.zeros(where.shape)
            scored[where] = unscaled * scale[k, i]
            scores[k, rows] = scored
    return scores
