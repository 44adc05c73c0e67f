from dataclasses import replace

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.scaled_documents import ScaledDocuments
from tests.small_log import small_log


@pytest.mark.parametrize("kind", ["min-max", "query-min-max"])
def test_each_position_points_to_the_scaled_features_of_its_document(kind: str) -> None:
    log = small_log(rows=12)
    normaliser = Normaliser.fit(kind, log.candidates)
    shown = ScaledDocuments.of(log, normaliser)
    scaled = normaliser.apply(log.candidates).features
    for row, position in zip(*np.nonzero(log.where), strict=True):
        document = log.candidates.offsets[log.query[row]] + log.ranking[row, position]
        np.testing.assert_array_equal(shown.features[shown.documents[row, position]], scaled[document])


def test_documents_that_were_never_shown_are_not_scaled() -> None:
    log = small_log(rows=2)
    shown = ScaledDocuments.of(log, Normaliser.fit("min-max", log.candidates))
    assert shown.rows.tolist() == sorted(set(log.documents[log.where].tolist()))
    assert len(shown.features) == len(shown.rows) + 1 < log.candidates.n_documents


def test_padding_points_to_a_row_of_zeros() -> None:
    log = small_log(rows=40)
    assert not log.where.all()
    shown = ScaledDocuments.of(log, Normaliser.fit("min-max", log.candidates))
    assert (shown.features[shown.documents[~log.where]] == 0).all()


def test_a_log_that_shows_nothing_is_refused() -> None:
    log = small_log(rows=3)
    nothing = replace(log, ranking=np.full_like(log.ranking, -1), clicks=np.zeros_like(log.clicks))
    with pytest.raises(InputError, match="the log shows no documents"):
        ScaledDocuments.of(nothing, Normaliser.fit("min-max", log.candidates))
