import dataclasses
import json
from dataclasses import replace

import numpy as np
import pytest

from cuolr.off_policy.gain_estimate import GainByEstimator
from tests.off_policy.evaluated import evaluated

PBM = GainByEstimator("pbm", 0.05, (0.02, 0.08), (0.02, 0.08), calibration=1.0, difference=0.0)
UBM = GainByEstimator("ubm", 0.04, (0.01, 0.07), (0.01, 0.07), calibration=1.0, difference=-0.01)
IPS = GainByEstimator("reward-interaction-ips", 0.04, (0.0, 0.08), (0.0, 0.08), effective_sample_size=400.0)
DR = replace(IPS, estimator="cascade-dr", requirement="must not lose")
BETTER = evaluated(PBM, UBM, gain=0.05, interval=(0.01, 0.08), never_shown=0.1, overlap=0.8)
UNKNOWN = replace(PBM, interval=(-np.inf, np.inf), bounds=(-np.inf, np.inf))
NOT_BETTER = replace(PBM, interval=(-0.01, 0.08), bounds=(-0.01, 0.08))


@pytest.mark.parametrize(
    ("change", "recommendation", "reason"),
    [
        ({}, "ship", "under all users that explain the log (pbm, ubm)"),
        ({"estimates": (NOT_BETTER, UBM)}, "keep", "no evidence that the model is better than the logging policy"),
        ({"estimates": (NOT_BETTER,), "against": "OLD"}, "keep", "no evidence that the model is better than OLD"),
        ({"estimates": ()}, "keep", "too few clicks or queries (100) to estimate the gain"),
        ({"estimates": (UNKNOWN,)}, "keep", "too few clicks or queries (100) to estimate the gain"),
        (
            {"never_shown": 1.0},
            "keep",
            "the log shows none of the documents in the model's top 10, so its gain cannot be estimated",
        ),
        ({"estimates": (), "outcome": "reward"}, "keep", "too few clicks with a reward or queries (100) to estimate"),
        (
            {"estimates": (replace(PBM, interval=(0.5, 2.6)),)},
            "keep",
            "too few clicks or queries (100) to estimate the gain",
        ),
        ({"estimates": (replace(PBM, interval=(1e-9, 1e-8)),)}, "keep", "no evidence that the model is better"),
        # One of the users that explain the log does not like the model.
        ({"estimates": (PBM, replace(NOT_BETTER, estimator="dcm"))}, "test", "but there is no gain by dcm: test it"),
        # Users for which the log says nothing: the others decide whether it is worth a test.
        (
            {"estimates": (replace(UNKNOWN, estimator="trust"), PBM)},
            "test",
            "but this log cannot say what users of trust would do: test it",
        ),
        ({"estimates": (replace(UNKNOWN, estimator="trust"), NOT_BETTER)}, "keep", "no evidence that the model"),
        # In the worst case of the documents that were never shown, the model loses.
        (
            {"estimates": (replace(PBM, bounds=(-0.02, 0.1)), UBM), "never_shown": 0.3},
            "test",
            "but documents that the log hardly shows may cost the gain (30% of its top 10 were never shown): test it",
        ),
        ({"estimates": (PBM, IPS)}, "test", "but there is no gain by reward-interaction-ips: test it"),
        (
            {"estimates": (PBM, replace(IPS, interval=(0.01, 0.08), bounds=(0.01, 0.08)))},
            "ship",
            "(pbm) and by reward-",
        ),
        # Other importance sampling need not find a gain, but no loss either, unless it is for position-based users.
        (
            {"estimates": (PBM, replace(DR, interval=(-0.1, 0.08)))},
            "ship",
            "under all users that explain the log (pbm)",
        ),
        ({"estimates": (PBM, replace(DR, interval=(-0.1, -0.01)))}, "test", "but there is no gain by cascade-dr: test"),
        ({"estimates": (PBM, replace(DR, interval=(-0.1, -0.01), requirement="none"))}, "ship", "under all users"),
        # Fewer effective sessions than 100 have no say.
        ({"estimates": (PBM, replace(IPS, effective_sample_size=99.0))}, "ship", "under all users"),
        ({"estimates": (replace(PBM, calibration=1.08), UBM)}, "test", "users of pbm expect 108% of the logged clicks"),
        ({"estimates": (replace(PBM, difference=None),)}, "test", "an aggregated log cannot tell click models apart"),
        (
            {"better_click_rates": ("ctr-document",)},
            "test",
            "but click rates (ctr-document) explain held-out sessions better than every click model: test it",
        ),
        ({"queries": 29}, "keep", "from only 29 queries; at least 30 are needed"),
        ({"trained_on_these_queries": True}, "test", "but the model was trained on these clicks: test it"),
        (
            {"trained_on_these_queries": True, "identifiable": False},
            "test",
            "the model was trained on these clicks, and position bias is not identifiable from this log",
        ),
        ({"identifiable": False}, "test", "but position bias is not identifiable from this log: test it"),
        ({"identifiable": False, "queries": 29}, "keep", "at least 30 are needed"),
        (
            {"identifiable": False, "sessions_for_test": 12_345},
            "test",
            "test it on part of the traffic (an A/B test of 12,345 sessions in each arm finds this gain)",
        ),
        (
            {"identifiable": False, "sessions_for_test": 12_345, "sessions_for_interleaving": 678},
            "test",
            "(an A/B test of 12,345 sessions in each arm, or team-draft interleaving of 678 finds this gain)",
        ),
    ],
)
def test_the_recommendation_follows_from_what_the_estimators_say(
    change: dict[str, object], recommendation: str, reason: str
) -> None:
    evaluation = dataclasses.replace(BETTER, **change)  # type: ignore[arg-type]
    assert evaluation.recommendation == recommendation
    assert reason in evaluation.reason


def test_the_interval_is_given_in_percent() -> None:
    assert BETTER.interval_text == "+1.0% to +8.0%"
    assert dataclasses.replace(BETTER, interval=(-np.inf, np.inf)).interval_text == "unknown"
    assert dataclasses.replace(BETTER, estimates=(replace(PBM, interval=(-40.0, 50.0)),)).interval_text == "unknown"


def test_json_holds_all_fields_and_what_follows_from_them() -> None:
    evaluation = replace(BETTER, interval=(-np.inf, np.inf), estimates=(UNKNOWN,), examination=((1.0, None),))
    written = json.loads(json.dumps(evaluation.as_dict(), allow_nan=False))
    assert written.keys() == {field.name for field in dataclasses.fields(BETTER)} | {"recommendation", "reason"}
    assert written["interval"] == written["estimates"][0]["bounds"] == [None, None]
    assert written["recommendation"] == "keep"
    assert written["examination"] == [[1.0, None]]


@pytest.mark.parametrize(
    ("correction", "interval", "expected"),
    [(-0.03, (-0.05, -0.01), "test"), (-0.01, (-0.015, -0.001), "ship"), (-0.03, (-0.08, 0.02), "ship")],
)
def test_users_that_lists_like_the_models_refute_are_a_doubt(
    correction: float, interval: tuple[float, float], expected: str
) -> None:
    """PBM gains +2 % at least: less than that is missed, or it may be noise, in the others."""
    found = replace(BETTER, estimates=(replace(PBM, corrections=((correction, interval), (0.0, (-np.inf, np.inf)))),))
    assert found.recommendation == expected
    assert ("logged lists that are better for users of pbm have fewer clicks than they should" in found.reason) == (
        expected == "test"
    )


@pytest.mark.parametrize(
    ("correction", "interval", "expected"),
    [(-0.03, (-0.08, 0.02), "test"), (0.0, (-0.015, 0.015), "ship"), (-0.03, (-0.05, -0.01), "test")],
)
def test_lists_must_show_that_better_ones_have_more_clicks(
    correction: float, interval: tuple[float, float], expected: str
) -> None:
    """PBM gains +2 % at least: lists that cannot tell 3 % less from 2 % more are a doubt, also without significance."""
    found = replace(BETTER, estimates=(replace(PBM, corrections=((0.0, (-0.1, 0.1)), (correction, interval))),))
    assert found.recommendation == expected
    assert ("logged lists differ too little to show that better ones for users of pbm have more" in found.reason) == (
        interval[1] > 0 and expected == "test"
    )
