"""`lightgbm`: a model file of LightGBM, in its text format."""

from cuolr.export import EXPORTERS
from cuolr.export.exporter import ExportedModel, Exporter, PointwiseModel
from cuolr.export.raw_trees import raw_trees
from cuolr.policies.trees_policy import load_lightgbm
from cuolr.types import Doubles, Floats


@EXPORTERS.register("lightgbm")
class LightGbmFile(Exporter):
    """Trees on raw features, for `lightgbm.Booster(model_file=…)`."""

    def export(self, model: PointwiseModel, name: str) -> ExportedModel:
        """The text, and LightGBM's own predictions from it."""
        trees = raw_trees(model)
        unnamed = " ".join(f"Column_{j}" for j in range(trees.n_features))
        text = trees.lightgbm_text.replace(f"feature_names={unnamed}\n", f"feature_names={' '.join(model.names)}\n", 1)
        booster = load_lightgbm().Booster(model_str=text)

        def score(features: Floats) -> Doubles:
            scores: Doubles = booster.predict(features, num_threads=1)
            return scores

        return ExportedModel("text model", text.encode(), score, (".txt", ".model"))
