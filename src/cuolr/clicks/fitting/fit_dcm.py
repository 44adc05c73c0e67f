"""The dependent click model, fitted to a log."""

from collections.abc import Iterator

import numpy as np

from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.dcm import DependentClickModel
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, Values
from cuolr.clicks.fitting.top_down_fit import Counted, Passed, TopDownFit
from cuolr.types import Doubles, Ints


@CLICK_FITS.register("dcm")
class DependentClickFit(TopDownFit):
    """After a click at position k the user continues with probability λ_k, after a skip always; Guo et al. 2009."""

    def start(self) -> dict[str, Doubles]:
        """All alike."""
        return {"attractiveness": np.full(self.pairs, 0.3), "continuation": np.full(self.k, 0.5)}

    def after_click(self, values: Values, pair: Ints, position: Ints) -> Doubles:
        """λ_k."""
        return values["continuation"][position]

    def count(self, values: Values, passed: Passed) -> Iterator[Counted]:
        """By position of the click."""
        yield Counted("continuation", passed.position, passed.clicked * passed.onward, passed.clicked)

    def click_model(self, values: Values) -> ClickModel:
        """λ of the last position is not identified: that of the position above applies."""
        return DependentClickModel(continuation=tuple(values["continuation"][: max(1, self.k - 1)].tolist()))
