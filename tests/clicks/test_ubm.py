import numpy as np
import pytest

from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.errors import InputError
from tests.clicks.three_documents import A1, A2, A3, click_probability


def test_clicks_on_three_documents() -> None:
    first = A1
    second = A2 * (A1 * 0.98 + (1 - A1) * 1.0)
    last_was_first = A1 * (1 - 0.98 * A2)
    none = (1 - A1) * (1 - A2)
    third = A3 * (second * 1.0 + last_was_first * 0.62 + none * 0.95)
    assert click_probability(UserBrowsingModel()) == pytest.approx([first, second, third])


def test_eta_is_a_power() -> None:
    second = A2 * (A1 * 0.98**3 + (1 - A1) * 1.0)
    last_was_first = A1 * (1 - 0.98**3 * A2)
    none = (1 - A1) * (1 - A2)
    third = A3 * (second * 1.0 + last_was_first * 0.62**3 + none * 0.95**3)
    assert click_probability(UserBrowsingModel(eta=3)) == pytest.approx([A1, second, third])


def test_without_severity_everything_is_examined() -> None:
    assert click_probability(UserBrowsingModel(eta=0)) == pytest.approx([A1, A2, A3])


def test_past_rank_ten_nothing_clicked_takes_the_last_entry_of_row_ten() -> None:
    relevance = np.zeros((1, 15), np.float32)
    relevance[0, 14] = 1
    clicks = UserBrowsingModel(noise=0).click_probability(relevance, np.ones((1, 15), np.bool_))
    assert clicks[0, 14] == pytest.approx(0.43)


@pytest.mark.parametrize(("distance", "chance"), [(1, 1.0), (4, 0.96), (8, 0.18), (9, 0.12), (10, 0.12), (14, 0.12)])
def test_past_rank_ten_the_distance_counts_up_to_nine(distance: int, chance: float) -> None:
    relevance = np.zeros((1, 15), np.float32)
    relevance[0, [14 - distance, 14]] = 1
    clicks = UserBrowsingModel(noise=0, eta=1).click_probability(relevance, np.ones((1, 15), np.bool_))
    clicked = clicks[0, 14 - distance]
    assert clicks[0, 14] == pytest.approx(clicked * chance + (1 - clicked) * 0.43)


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(InputError, match=r"setting 'examination\[1\]': expected 2 entries, found 3"):
        UserBrowsingModel(examination=((1.0,), (1.0, 1.0, 1.0)))


def test_a_single_row_is_refused() -> None:
    with pytest.raises(InputError, match="setting 'examination': expected two rows or more, found 1"):
        UserBrowsingModel(examination=((1.0,),))


def test_an_entry_that_is_no_probability_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match=r"setting 'examination\[1\]\[0\]': expected 0 to 1, found 1\.98"):
        UserBrowsingModel(examination=((1.0,), (1.98, 1.0)))
