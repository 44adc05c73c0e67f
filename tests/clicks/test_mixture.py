import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.errors import InputError

RELEVANCE = np.array([[1.0, 0.2, 0.0, 0.6]], np.float32)
WHERE = np.ones((1, 4), np.bool_)


def test_a_click_is_as_likely_as_on_average_over_the_users() -> None:
    mixed = click_model("mixture", models=["pbm", "cascade"]).click_probability(RELEVANCE, WHERE)
    alone = [click_model(name).click_probability(RELEVANCE, WHERE) for name in ("pbm", "cascade")]
    np.testing.assert_allclose(mixed, (alone[0] + alone[1]) / 2)


def test_a_session_is_of_one_user_all_the_way() -> None:
    # A perfect user looks at all of the list; the other, at nothing below the first click.
    model = click_model("mixture", models=["perfect", "cascade"], noise=1.0)
    lists = np.ones((20_000, 4), np.float32)
    clicks, examined = model.sample(lists, np.ones(lists.shape, np.bool_), np.random.default_rng(1))
    np.testing.assert_array_equal(clicks, examined)
    assert set(examined.sum(axis=1)) == {1, 4}
    assert (examined.sum(axis=1) == 4).mean() == pytest.approx(1 / 2, abs=4 * np.sqrt(0.25 / 20_000))


@pytest.mark.parametrize("models", [["pbm", "mixture"], ["trust"]])
def test_what_is_no_model_of_examination_is_refused(models: list[str]) -> None:
    with pytest.raises(InputError, match=models[-1]):
        click_model("mixture", models=models)


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(InputError, match="pbm"):
        click_model("mixture", models=["pmb"])
