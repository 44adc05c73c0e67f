"""The words of the pages that commands write, as `docs/glossary.md` explains them."""

from collections.abc import Mapping, Sequence

_MEANINGS = {
    "attractiveness, α": "Probability that a document is clicked once it is examined.",
    "cell": "One run of an experiment: a method on a log of one click model, on one fold or seed.",
    "click model": "How users examine a list and click.",
    "corrected click rate": (
        "Clicks of a document over its expected examinations: how often users would click it at position 1."
    ),
    "CUOLR": "The method of the paper: offline reinforcement learning on the ranking MDP (sac, cql and others).",
    "examination, χ": "Whether a user inspects a position; its probability may depend on the clicks above.",
    "expected examinations": "Σ χ over the impressions of a document; also called exposure.",
    "fold": "One of several divisions of a labelled data set into training, validation and test queries.",
    "held-out queries": "Queries that training does not learn from, by which the best step is chosen.",
    "identifiable": "Position bias can be separated from attractiveness by this log.",
    "impression": "A document shown at a position in a session.",
    "LOGGING, ORACLE, SKYLINE": (
        "Reference rankers of experiments: the logging policy; LambdaMART trained on the true labels; the best of "
        "several rankers trained on the true labels of the shown documents."
    ),
    "logging policy": "The ranker that showed the lists of a log, also called production.",
    "nDCG@k, ERR@k": "Measures of a ranking against labels.",
    "position bias": "The higher a document stands, the more it is examined, and clicked.",
    "propensity": (
        "The probability of an examination (ipw), or with which the logging policy shows a document at a position "
        "(logging_propensity)."
    ),
    "session": "One list shown to one user once, with its clicks.",
}
OF_EXPERIMENTS = (
    "cell",
    "click model",
    "CUOLR",
    "fold",
    "held-out queries",
    "LOGGING, ORACLE, SKYLINE",
    "logging policy",
    "nDCG@k, ERR@k",
    "propensity",
    "session",
)
OF_LOGS = (
    "attractiveness, α",
    "examination, χ",
    "identifiable",
    "impression",
    "logging policy",
    "position bias",
    "propensity",
    "session",
)
OF_BROWSING = (
    "corrected click rate",
    "examination, χ",
    "expected examinations",
    "identifiable",
    "logging policy",
    "position bias",
    "session",
)


def glossary(words: Sequence[str]) -> Mapping[str, str]:
    """The meaning of each word."""
    return {word: _MEANINGS[word] for word in words}
