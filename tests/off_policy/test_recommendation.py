import dataclasses
import json

import numpy as np
import pytest

from cuolr.off_policy.recommendation import OffPolicyEvaluation

BETTER = OffPolicyEvaluation(
    queries=100,
    k=10,
    trained_on_these_queries=False,
    never_shown=0.1,
    overlap=0.8,
    gain=0.05,
    interval=(0.02, 0.08),
    logging_policy_share=None,
    logging_policy_overlap=None,
    identifiable=True,
)


@pytest.mark.parametrize(
    ("change", "recommendation", "reason"),
    [
        ({}, "ship", "and the log shows nearly all of its top 10"),
        ({"never_shown": 0.3}, "test", "but 30% of its top 10 were never shown: test it"),
        ({"interval": (-0.01, 0.08)}, "keep", "no evidence that the model is better"),
        ({"interval": (-0.01, 0.08), "never_shown": 0.3}, "keep", "no evidence that the model is better"),
        ({"interval": (-np.inf, np.inf)}, "keep", "too few clicks or queries (100) to estimate the gain"),
        ({"interval": (1e-9, 1e-8)}, "keep", "no evidence that the model is better"),
        ({"queries": 29}, "keep", "from only 29 queries; at least 30 are needed"),
        ({"trained_on_these_queries": True}, "test", "but the model was trained on these clicks: test it"),
        (
            {"trained_on_these_queries": True, "never_shown": 0.3},
            "test",
            "the model was trained on these clicks, and 30% of its top 10 were never shown",
        ),
        ({"identifiable": False}, "test", "but position bias is not identifiable from this log: test it"),
        ({"identifiable": False, "queries": 29}, "keep", "at least 30 are needed"),
    ],
)
def test_the_recommendation_follows_from_gain_and_overlap(
    change: dict[str, object], recommendation: str, reason: str
) -> None:
    evaluation = dataclasses.replace(BETTER, **change)  # type: ignore[arg-type]
    assert evaluation.recommendation == recommendation
    assert reason in evaluation.reason


def test_the_interval_is_given_in_percent() -> None:
    assert BETTER.interval_text == "+2.0% to +8.0%"
    assert dataclasses.replace(BETTER, interval=(-np.inf, np.inf)).interval_text == "unknown"


def test_json_holds_all_fields_and_what_follows_from_them() -> None:
    evaluation = dataclasses.replace(BETTER, interval=(-np.inf, np.inf), examination=((1.0, None),))
    written = json.loads(json.dumps(evaluation.as_dict(), allow_nan=False))
    assert written.keys() == {field.name for field in dataclasses.fields(BETTER)} | {"recommendation", "reason"}
    assert written["interval"] == [None, None]
    assert written["recommendation"] == "keep"
    assert written["examination"] == [[1.0, None]]
