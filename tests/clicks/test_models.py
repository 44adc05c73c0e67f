"""Click probabilities of each click model, worked by hand."""

import numpy as np
import pytest

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.ccm import ClickChainModel
from cuolr.clicks.click_model import ClickModel, click_model, relevance_of
from cuolr.clicks.dbn import DynamicBayesianModel
from cuolr.clicks.dcm import DependentClickModel
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.perfect import PerfectModel
from cuolr.clicks.sdbn import SimplifiedDynamicBayesianModel
from cuolr.clicks.trust import TrustBiasModel
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.errors import InputError

# Three documents: grades 2, 0 and 3 on a scale up to 4.
R1, R2, R3 = 3 / 15, 0.0, 7 / 15
# Attractiveness with the default click noise of 0.1.
A1, A2, A3 = 0.1 + 0.9 * 3 / 15, 0.1, 0.1 + 0.9 * 7 / 15


def click_probability(model: ClickModel) -> list[float]:
    """The model's marginals for the list 2, 0, 3."""
    relevance = relevance_of(np.array([[2, 0, 3]]), max_grade=4)
    marginals: list[float] = model.click_probability(relevance, np.ones((1, 3), np.bool_))[0].tolist()
    return marginals


def test_clicks_on_three_documents_under_pbm() -> None:
    assert click_probability(PositionBasedModel()) == pytest.approx([0.68 * A1, 0.61 * A2, 0.48 * A3])


def test_eta_is_a_power_under_pbm() -> None:
    assert click_probability(PositionBasedModel(eta=2)) == pytest.approx([0.68**2 * A1, 0.61**2 * A2, 0.48**2 * A3])


def test_without_severity_there_is_no_position_bias_under_pbm() -> None:
    model = PositionBasedModel(eta=0)
    assert click_probability(model) == pytest.approx([A1, A2, A3])
    lists = np.full((1000, 15), 0.5, np.float32)
    _, examination = model.sample(lists, np.ones(lists.shape, np.bool_), np.random.default_rng(1))
    assert examination.all()


def test_without_noise_an_irrelevant_document_is_never_clicked_under_pbm() -> None:
    assert click_probability(PositionBasedModel(noise=0)) == pytest.approx([0.68 * 3 / 15, 0, 0.48 * 7 / 15])


def test_the_last_parameter_carries_on_in_lists_of_fifteen_under_pbm() -> None:
    relevance = np.ones((1, 15), np.float32)
    clicks = PositionBasedModel().click_probability(relevance, np.ones((1, 15), np.bool_))
    assert clicks[0, 9:] == pytest.approx([0.06] * 6)


def test_clicks_on_three_documents_under_cascade() -> None:
    expected = [A1, (1 - A1) * A2, (1 - A1) * (1 - A2) * A3]
    assert click_probability(CascadeModel()) == pytest.approx(expected)


def test_there_is_one_click_at_most_under_cascade() -> None:
    relevance = np.random.default_rng(1).random((10_000, 10), dtype=np.float32)
    clicks, _ = CascadeModel().sample(relevance, np.ones(relevance.shape, np.bool_), np.random.default_rng(2))
    assert clicks.sum(axis=1).max() == 1


def test_clicks_on_three_documents_under_dcm() -> None:
    second = 1 - A1 * (1 - 0.68)
    third = second * (1 - A2 * (1 - 0.61))
    assert click_probability(DependentClickModel()) == pytest.approx([A1, second * A2, third * A3])


def test_eta_is_a_power_of_the_continuation_under_dcm() -> None:
    second = 1 - A1 * (1 - 0.68**2)
    third = second * (1 - A2 * (1 - 0.61**2))
    assert click_probability(DependentClickModel(eta=2)) == pytest.approx([A1, second * A2, third * A3])


def test_without_severity_everything_is_examined_under_dcm() -> None:
    assert click_probability(DependentClickModel(eta=0)) == pytest.approx([A1, A2, A3])


def test_the_last_parameter_carries_on_in_lists_of_fifteen_under_dcm() -> None:
    relevance = np.ones((1, 15), np.float32)
    clicks = DependentClickModel().click_probability(relevance, np.ones((1, 15), np.bool_))[0]
    assert clicks[11:] / clicks[10:-1] == pytest.approx([0.06] * 4)


def test_clicks_on_three_documents_under_ccm() -> None:
    second = 0.9 * (1 - A1) + A1 * (0.5 * (1 - R1) + 0.25 * R1)
    third = second * (0.9 * (1 - A2) + A2 * (0.5 * (1 - R2) + 0.25 * R2))
    assert click_probability(ClickChainModel()) == pytest.approx([A1, second * A2, third * A3])


def test_relevance_can_be_the_attractiveness_under_ccm() -> None:
    second = 0.9 * (1 - A1) + A1 * (0.5 * (1 - A1) + 0.25 * A1)
    third = second * (0.9 * (1 - A2) + A2 * (0.5 * (1 - A2) + 0.25 * A2))
    model = ClickChainModel(relevance_is_attractiveness=True)
    assert click_probability(model) == pytest.approx([A1, second * A2, third * A3])


def test_a_user_may_leave_without_a_click_under_ccm() -> None:
    model = ClickChainModel(continuation_after_skip=0)
    second = A1 * (0.5 * (1 - R1) + 0.25 * R1)
    assert click_probability(model)[1] == pytest.approx(second * A2)


def test_clicks_on_three_documents_under_ubm() -> None:
    first = A1
    second = A2 * (A1 * 0.98 + (1 - A1) * 1.0)
    last_was_first = A1 * (1 - 0.98 * A2)
    none = (1 - A1) * (1 - A2)
    third = A3 * (second * 1.0 + last_was_first * 0.62 + none * 0.95)
    assert click_probability(UserBrowsingModel()) == pytest.approx([first, second, third])


def test_eta_is_a_power_under_ubm() -> None:
    second = A2 * (A1 * 0.98**3 + (1 - A1) * 1.0)
    last_was_first = A1 * (1 - 0.98**3 * A2)
    none = (1 - A1) * (1 - A2)
    third = A3 * (second * 1.0 + last_was_first * 0.62**3 + none * 0.95**3)
    assert click_probability(UserBrowsingModel(eta=3)) == pytest.approx([A1, second, third])


def test_without_severity_everything_is_examined_under_ubm() -> None:
    assert click_probability(UserBrowsingModel(eta=0)) == pytest.approx([A1, A2, A3])


def test_past_rank_ten_nothing_clicked_takes_the_last_entry_of_row_ten_under_ubm() -> None:
    relevance = np.zeros((1, 15), np.float32)
    relevance[0, 14] = 1
    clicks = UserBrowsingModel(noise=0).click_probability(relevance, np.ones((1, 15), np.bool_))
    assert clicks[0, 14] == pytest.approx(0.43)


@pytest.mark.parametrize(("distance", "chance"), [(1, 1.0), (4, 0.96), (8, 0.18), (9, 0.12), (10, 0.12), (14, 0.12)])
def test_past_rank_ten_the_distance_counts_up_to_nine_under_ubm(distance: int, chance: float) -> None:
    relevance = np.zeros((1, 15), np.float32)
    relevance[0, [14 - distance, 14]] = 1
    clicks = UserBrowsingModel(noise=0, eta=1).click_probability(relevance, np.ones((1, 15), np.bool_))
    clicked = clicks[0, 14 - distance]
    assert clicks[0, 14] == pytest.approx(clicked * chance + (1 - clicked) * 0.43)


def test_a_row_of_the_wrong_length_is_refused_under_ubm() -> None:
    with pytest.raises(InputError, match=r"setting 'examination\[1\]': expected 2 entries, found 3"):
        UserBrowsingModel(examination=((1.0,), (1.0, 1.0, 1.0)))


def test_a_single_row_is_refused_under_ubm() -> None:
    with pytest.raises(InputError, match="setting 'examination': expected two rows or more, found 1"):
        UserBrowsingModel(examination=((1.0,),))


def test_an_entry_that_is_no_probability_is_refused_with_its_place_under_ubm() -> None:
    with pytest.raises(InputError, match=r"setting 'examination\[1\]\[0\]': expected 0 to 1, found 1\.98"):
        UserBrowsingModel(examination=((1.0,), (1.98, 1.0)))


def test_clicks_on_three_documents_under_dbn() -> None:
    second = 0.8 * (1 - A1 * 0.7 * R1)
    third = second * 0.8 * (1 - A2 * 0.7 * R2)
    model = DynamicBayesianModel(satisfaction=0.7, perseverance=0.8)
    assert click_probability(model) == pytest.approx([A1, second * A2, third * A3])


def test_with_full_perseverance_it_is_the_simplified_model_under_dbn() -> None:
    simplified = click_probability(SimplifiedDynamicBayesianModel())
    assert click_probability(DynamicBayesianModel(perseverance=1)) == pytest.approx(simplified)
    continued = [1, 0.9, 0.9**2]  # the default
    assert click_probability(DynamicBayesianModel()) == pytest.approx(np.multiply(simplified, continued))


def test_clicks_on_three_documents_under_sdbn() -> None:
    second = 1 - A1 * 0.9 * R1
    third = second * (1 - A2 * 0.9 * R2)
    assert click_probability(SimplifiedDynamicBayesianModel()) == pytest.approx([A1, second * A2, third * A3])


def test_who_is_never_satisfied_examines_everything_under_sdbn() -> None:
    assert click_probability(SimplifiedDynamicBayesianModel(satisfaction=0)) == pytest.approx([A1, A2, A3])


def test_clicks_on_three_documents_under_trust() -> None:
    expected = [
        0.68 * (0.98 * R1 + 0.65 / 1 * (1 - R1)),
        0.61 * (0.97 * R2 + 0.65 / 2 * (1 - R2)),
        0.48 * (0.96 * R3 + 0.65 / 3 * (1 - R3)),
    ]
    assert click_probability(TrustBiasModel()) == pytest.approx(expected)


def test_noise_makes_an_irrelevant_document_look_relevant_under_trust() -> None:
    clicks = click_probability(TrustBiasModel(noise=0.1, eta=0))
    assert clicks[1] == pytest.approx(0.97 * 0.1 + 0.65 / 2 * 0.9)


def test_without_trust_it_is_the_position_based_model_under_trust() -> None:
    model = TrustBiasModel(noise=0.1, click_relevant=(1.0,), click_irrelevant=(0.0,))
    assert click_probability(model) == pytest.approx([0.68 * A1, 0.61 * A2, 0.48 * A3])
    assert click_probability(model) == pytest.approx(click_probability(PositionBasedModel()))


def test_the_constants_are_the_published_ones_down_to_rank_twenty_five_under_trust() -> None:
    where = np.ones((1, 25), np.bool_)
    model = TrustBiasModel(eta=0)
    relevant = model.click_probability(np.ones((1, 25), np.float32), where)[0]
    irrelevant = model.click_probability(np.zeros((1, 25), np.float32), where)[0]
    assert relevant == pytest.approx([1 - (min(rank, 20) + 1) / 100 for rank in range(1, 26)])
    assert irrelevant == pytest.approx([0.65 / min(rank, 10) for rank in range(1, 26)])


def test_clicks_on_three_documents_under_perfect() -> None:
    assert click_probability(PerfectModel()) == pytest.approx([A1, A2, A3])


RELEVANCE = np.array([[1.0, 0.2, 0.0, 0.6]], np.float32)
WHERE = np.ones((1, 4), np.bool_)


def test_a_click_is_as_likely_as_on_average_over_the_users_under_mixture() -> None:
    mixed = click_model("mixture", models=["pbm", "cascade"]).click_probability(RELEVANCE, WHERE)
    alone = [click_model(name).click_probability(RELEVANCE, WHERE) for name in ("pbm", "cascade")]
    np.testing.assert_allclose(mixed, (alone[0] + alone[1]) / 2)


def test_a_session_is_of_one_user_all_the_way_under_mixture() -> None:
    # A perfect user looks at all of the list; the other, at nothing below the first click.
    model = click_model("mixture", models=["perfect", "cascade"], noise=1.0)
    lists = np.ones((20_000, 4), np.float32)
    clicks, examined = model.sample(lists, np.ones(lists.shape, np.bool_), np.random.default_rng(1))
    np.testing.assert_array_equal(clicks, examined)
    assert set(examined.sum(axis=1)) == {1, 4}
    assert (examined.sum(axis=1) == 4).mean() == pytest.approx(1 / 2, abs=4 * np.sqrt(0.25 / 20_000))


@pytest.mark.parametrize("models", [["pbm", "mixture"], ["trust"]])
def test_what_is_no_model_of_examination_is_refused_under_mixture(models: list[str]) -> None:
    with pytest.raises(InputError, match=models[-1]):
        click_model("mixture", models=models)


def test_an_unknown_model_is_named_under_mixture() -> None:
    with pytest.raises(InputError, match="pbm"):
        click_model("mixture", models=["pmb"])
