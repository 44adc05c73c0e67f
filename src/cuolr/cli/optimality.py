"""`cuolr optimality`: test whether sorting by attractiveness maximises the expected clicks."""

from dataclasses import asdict, dataclass

from cuolr.cli.options import ClickModelOptions
from cuolr.cli.terminal import progress_bar, show_json, show_text
from cuolr.clicks.optimality import check_optimality
from cuolr.random import DEFAULT_SEED


@dataclass(frozen=True)
class SearchOptions:
    """What to search.

    Attributes:
        documents: Number of documents to choose from.
        k: Length of the lists. By default all documents.
        discount: A click at position k counts discount^(k-1).
        instances: Number of random instances.
        seed: Seed of the instances.
    """

    documents: int = 6
    k: int | None = None
    discount: float = 1.0
    instances: int = 500
    seed: int = DEFAULT_SEED


def optimality(
    users: ClickModelOptions,
    search: SearchOptions = SearchOptions(),
    json: bool = False,
) -> None:
    """Test by exhaustive search whether sorting by attractiveness maximises the expected clicks.

    Args:
        users: Parameters of the click model.
        search: What to search.
        json: Print JSON instead of text.
    """
    with progress_bar("instances", search.instances) as progress:
        report = check_optimality(users.model(), **asdict(search), progress=progress)
    if json:
        show_json({**asdict(report), "holds": report.holds})
    else:
        show_text(report.describe())
