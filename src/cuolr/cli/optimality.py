"""`cuolr optimality`: does sorting by attractiveness maximise the expected clicks?"""

from dataclasses import asdict

from cuolr.cli.click_model_options import ClickModelOptions
from cuolr.cli.terminal import show_json, show_text
from cuolr.clicks.optimality import check_optimality


def optimality(
    click_model: str,
    documents: int = 6,
    k: int | None = None,
    discount: float = 1.0,
    instances: int = 500,
    seed: int = 1,
    options: ClickModelOptions = ClickModelOptions(),
    json: bool = False,
) -> None:
    """Check by exhaustive search whether sorting by attractiveness maximises the expected clicks.

    Args:
        click_model: A click model's name, or a TOML file that describes one.
        documents: How many documents there are to choose from.
        k: How many of them a list shows; by default all.
        discount: A click at position k counts discount^(k-1).
        instances: How many random instances to search.
        seed: Of the instances.
        options: The click model's parameters.
        json: Print JSON instead of text.
    """
    report = check_optimality(options.model(click_model), documents, k, discount, instances, seed)
    if json:
        show_json({**asdict(report), "holds": report.holds})
    else:
        show_text(report.describe())
