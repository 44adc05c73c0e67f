"""Clicks with the true examination, which a simulator alone knows: what a debiasing could reach. Left of the wall."""

from dataclasses import replace

import numpy as np

from cuolr.logs.clicklog import ClickLog


def only_examined(log: ClickLog) -> ClickLog:
    """The sessions with only the documents that their users examined.

    A naive learner then learns from clicks / examinations of each document, without any bias of position.

    Args:
        log: Raw sessions with `examination`, see `simulate(keep_examination=True)`.
    """
    assert log.examination is not None, "expected a log that records examination"
    ranking = np.where(log.examination > 0, log.ranking, -1).astype(log.ranking.dtype)
    return replace(log, ranking=ranking, examination=None)
