"""The study of off-policy evaluation."""

from dataclasses import replace

import numpy as np
import pytest

from cuolr import fit_ranksvm, generate_splits
from cuolr.clicks.pbm import EYE_TRACKING
from cuolr.off_policy.recommendation import GainByEstimator, OffPolicyEvaluation
from studies import recommendations

# Attractiveness of a document of grade 0, 1 or 2.
ATTRACTIVE = np.array([0.1, 0.4, 1.0])
TRAIN = generate_splits("tiny", 60, 10, 10, seed=3)[0]


def test_the_true_gain_is_of_the_models_own_lists() -> None:
    """Under PBM, by hand: the examination of each position times the attractiveness of its document."""
    production, policy = (fit_ranksvm(TRAIN, fraction, seed=1) for fraction in (0.1, 1.0))
    clicks = {"policy": 0.0, "production": 0.0}
    for query in range(60):
        of_query = TRAIN.select(np.array([query]))
        attractive = ATTRACTIVE[of_query.relevance]
        for name, ranker in (("policy", policy), ("production", production)):
            order = [d for d in ranker.rank(of_query.candidates, 5)[0] if d >= 0]
            clicks[name] += float((attractive[order] * EYE_TRACKING[: len(order)]).sum())
    expected = clicks["policy"] / clicks["production"] - 1
    assert expected > 0.01
    assert recommendations.true_gain(TRAIN, policy, production, "pbm", 5) == pytest.approx(expected)


def test_a_row_has_both_recommendations_and_the_true_gain() -> None:
    keep = GainByEstimator("pbm", 0.02, (-0.049, 0.09), (-0.049, 0.09))
    own = OffPolicyEvaluation(47, 10, False, 0.13, 0.87, 0.02, (-0.049, 0.09), (keep,), 0.15, 0.99, identifiable=False)
    test = GainByEstimator("pbm", 0.098, (0.078, 0.117), (0.078, 0.117))
    second = replace(own, queries=471, gain=0.098, interval=(0.078, 0.117), estimates=(test,))
    [row] = recommendations.rows_of(
        iter([recommendations.Evaluated(recommendations.LOGGERS[0], "pbm", own, second, 0.119)])
    )
    assert row[:4] == ["weak logger, PBM", "13%", "87%", "15%"]
    assert row[4:] == ["keep: +2.0% (-4.9% to +9.0%)", "test: +9.8% (+7.8% to +11.7%)", "+11.9%"]
