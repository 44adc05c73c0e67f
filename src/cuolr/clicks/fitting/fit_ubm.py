"""The user browsing model, fitted to a log."""

from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.cell_fit import ExaminationFit
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, Values, of_pairs
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.policies.forward_clicks import forward_clicks
from cuolr.types import Doubles, Ints


@CLICK_FITS.register("ubm")
class UserBrowsingFit(ExaminationFit):
    """P(C_k = 1 | last click above at j) = γ_{k,j} · α(d); Dupret and Piwowarski 2008.

    Entry k·(K + 1) + j of `examination` is for position k, from 0, and last click j, from 1; j = 0 means none.
    """

    def cell_of(self, position: Ints, last_click: Ints) -> Ints:
        """k·(K + 1) + j."""
        return position * (self.k + 1) + last_click

    @property
    def cells(self) -> int:
        """K · (K + 1)."""
        return self.k * (self.k + 1)

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """By dynamic programming over the last click."""
        attractiveness = of_pairs(values["attractiveness"], documents)
        return forward_clicks(attractiveness, documents >= 0, self.table(values))

    def table(self, values: Values) -> Doubles:
        """[K, K + 1] γ by position and last click."""
        return values["examination"].reshape(self.k, self.k + 1)

    def entry_name(self, name: str, place: int) -> str:
        """The position and the last click above it."""
        position, last = divmod(place, self.k + 1)
        return f"position {position + 1}, {f'last click at {last}' if last else 'no click above'}"

    def click_model(self, values: Values) -> ClickModel:
        """Row r has the entries for rank r by the distance to the last click; the last one is for none."""
        table = self.table(values)
        rows = [tuple(table[k, [*range(k, 0, -1), 0]].tolist()) for k in range(len(table))]
        if len(rows) == 1:
            rows.append((rows[0][0], rows[0][0]))
        return UserBrowsingModel(examination=tuple(rows))
