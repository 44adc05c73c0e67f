"""`cuolr list`: everything that has a name."""

from cuolr.cli.terminal import show_json, show_table
from cuolr.clicks.click_model import CLICK_MODELS
from cuolr.data.letor.catalog import CATALOGUE
from cuolr.data.synthetic import PRESETS
from cuolr.evaluation.measures import measure_names
from cuolr.policies.policy import POLICIES


def list_names(json: bool = False) -> None:
    """List every registered data set, click model, policy, learner, encoder, preset, measure and experiment.

    Args:
        json: Print JSON instead of tables.
    """
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.experiments.spec_file import BUILT_IN
    from cuolr.networks.encoder import ENCODERS
    from cuolr.training.base_learner import LEARNERS
    from cuolr.training.presets.configure import PRESETS as TRAINING_PRESETS

    names = {
        "data sets": sorted(CATALOGUE),
        "generated data sets": sorted(PRESETS),
        "click models": CLICK_MODELS.names(),
        "policies": POLICIES.names(),
        "learners": LEARNERS.names(),
        "encoders": ENCODERS.names(),
        "presets of training": sorted(TRAINING_PRESETS),
        "measures": [f"{name}@k" for name in measure_names()],
        "experiments": sorted(BUILT_IN),
    }
    if json:
        show_json(names)
    else:
        show_table("", ["", ""], [[kind, ", ".join(known)] for kind, known in names.items()], left=(0, 1))
