"""`cuolr optimality`: does sorting by attractiveness maximise the expected clicks?"""

from dataclasses import asdict

from cuolr.cli.options import ClickModelOptions, Name
from cuolr.cli.terminal import show_json, show_text
from cuolr.clicks.optimality import check_optimality


def optimality(
    click_model: Name,
    documents: int = 6,
    k: int | None = None,
    discount: float = 1.0,
    instances: int = 500,
    seed: int = 1,
    click_options: ClickModelOptions = ClickModelOptions(),
    json: bool = False,
) -> None:
    """Test by exhaustive search whether sorting by attractiveness maximises the expected clicks.

    Args:
        click_model: Name of a click model (`cuolr list click-models`), or a TOML file that describes one.
        documents: Number of documents to choose from.
        k: Length of the lists. By default all documents.
        discount: A click at position k counts discount^(k-1).
        instances: Number of random instances to search.
        seed: Seed of the instances.
        click_options: Parameters of the click model.
        json: Print JSON instead of text.
    """
    report = check_optimality(click_options.model(click_model), documents, k, discount, instances, seed)
    if json:
        show_json({**asdict(report), "holds": report.holds})
    else:
        show_text(report.describe())
