"""The position-based model, fitted to a log."""

import numpy as np

from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.cell_fit import ExaminationFit
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, Values
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.pattern_cells import PatternCells
from cuolr.types import Doubles, Ints


@CLICK_FITS.register("pbm")
class PositionBasedFit(ExaminationFit):
    """P(C_k = 1) = θ_k · α(d); Craswell et al. 2008, Chuklin et al. 2015, section 3.4."""

    def data(self, patterns: ClickPatterns) -> PatternCells:
        """Counts of (document, position)."""
        return patterns.cells.summed(position=True)

    def cell_of(self, position: Ints, last_click: Ints) -> Ints:
        """The position."""
        return position

    @property
    def cells(self) -> int:
        """K."""
        return self.k

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] θ_k · α(d)."""
        return self.conditional(values, documents, np.zeros(documents.shape, np.bool_))

    def click_model(self, values: Values) -> ClickModel:
        """With the examination of each position."""
        return PositionBasedModel(examination=tuple(values["examination"].tolist()))
