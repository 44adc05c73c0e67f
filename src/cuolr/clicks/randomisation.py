"""Simulated result randomisation: clicks on lists in random order, to estimate examination.

Left of the wall: labels decide the clicks.
"""

import numpy as np

from cuolr.clicks.click_model import ClickModel, TopDownModel
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.simulated_context import SimulatedContext
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.examination.randomised import estimate_propensities
from cuolr.policies.random_policy import UniformLogger
from cuolr.progress import Progress
from cuolr.random import DEFAULT_SEED
from cuolr.types import RankingDataset

# Keeps the random numbers apart from those of a log with the same seed.
SEED_OFFSET = 1 << 32


def randomise(
    dataset: RankingDataset,
    click_model: ClickModel,
    lists: int,
    k: int = 10,
    seed: int = DEFAULT_SEED,
    progress: Progress | None = None,
    *,
    contexts: tuple[SimulatedContext, ...] = (),
) -> Propensities:
    """Show each query's documents in random order, simulate clicks, and return only the estimates.

    Memory does not grow with the number of lists: they are simulated twice, with the same random numbers.

    Args:
        dataset: Left of the wall: its labels decide the clicks.
        click_model: The click model.
        lists: Number of lists; 10 million in the paper.
        k: Length of the lists.
        seed: 0 or more.
        progress: Called with the number of lists since the last call; each is simulated twice.
        contexts: Contexts of the sessions; the estimates are those of all contexts together.
    """
    logger = UniformLogger()
    simulation = Simulation(dataset, logger, click_model, lists, k, seed + SEED_OFFSET, contexts=contexts)
    return estimate_propensities(lambda: simulation.blocks(progress=progress))


def true_propensities(click_model: ClickModel, k: int) -> Propensities:
    """The true values that `estimate_propensities` estimates, as far as they depend on the position only.

    These are the examination of position-based models, and the continuation, named `true`, of models whose users
    continue until a click. Under trust bias, where the click probability of an examined document depends on the
    position, the ratio of clicks is not that of examination, and nothing is returned.
    """
    relevance = np.stack([np.zeros(k), np.ones(k)])
    clicked = click_model.click_if_examined(relevance)
    if (clicked != clicked[:, :1]).any():
        return Propensities()
    examined = click_model.examination_probability(relevance)
    continuation = {}
    if isinstance(click_model, TopDownModel) and click_model.continue_after_skip() == 1:
        goes_on = np.broadcast_to(click_model.continue_after_click(relevance), relevance.shape)
        if (goes_on[0] == goes_on[1]).all():
            continuation["true"] = Estimate(tuple(goes_on[0].tolist()))
    same_for_all = (examined[0] == examined[1]).all() and examined[0, 0] > 0
    examination = Estimate(tuple((examined[0] / examined[0, 0]).tolist())) if same_for_all else None
    return Propensities(examination, continuation)
