"""The whole of training in one object, in the manner of scikit-learn."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.evaluation.trec import document_names
from cuolr.examination.propensities import Propensities, read_propensities
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.assess import assess
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.store import load_policy, provenance_of, save_policy
from cuolr.training.fit import FitRequest, Validation, fit
from cuolr.training.log_form import TrainingLog
from cuolr.training.loop import Best, Progress, TrainingResult
from cuolr.training.presets.configure import RunConfig, configure, usual_learner
from cuolr.types import Candidates, Ints, RankingDataset, Strings

PARAMETERS = ("learner", "preset", "steps", "batch_size", "seed", "settings")


class Ranker:
    """Learns to rank from a click log.

    It follows scikit-learn's conventions: parameters are set by the constructor and read by `get_params`, what was
    learned has names that end in an underscore, and `sklearn.base.clone` gives an unfitted copy.

    Attributes:
        config: All settings of the run.
        result_: How training went, once fitted.
        policy_: The best policy, once fitted.
        best_score_: Its validation score.
    """

    def __init__(
        self,
        learner: Any = None,
        preset: str = "default",
        steps: int | None = None,
        batch_size: int | None = None,
        seed: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Set the parameters; they are checked at once.

        Args:
            learner: A registered name, or an instance of a learner's `Config`; None = factored, and cql with the
                paper's preset.
            preset: Preset for settings that are not given: `default` or `paper`.
            steps: Number of training steps.
            batch_size: Lists in a batch, for learners that learn in batches.
            seed: The same seed gives the same policy.
            settings: Other settings by name, such as `{"learner.encoder": "position"}`.
        """
        self.learner = learner
        self.preset = preset
        self.steps = steps
        self.batch_size = batch_size
        self.seed = seed
        self.settings = settings
        self.config = self._configure()

    def _configure(self) -> RunConfig:
        given = {"training.steps": self.steps, "training.batch_size": self.batch_size, "training.seed": self.seed}
        given = {name: value for name, value in given.items() if value is not None}
        learner = usual_learner(self.preset) if self.learner is None else self.learner
        config = configure(learner, self.preset, {**given, **(self.settings or {})})
        if self.batch_size is not None and not config.learner_class.data_parallel:
            raise InputError(f"batch_size={self.batch_size}: {config.learner} does not learn in batches")
        return config

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the constructor, by name; `deep` is there for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters of the constructor; what was learned stays until the next `fit`."""
        for name in parameters:
            if name not in PARAMETERS:
                raise InputError(f"unknown parameter '{name}'; known: {', '.join(PARAMETERS)}")
        before = self.get_params()
        try:
            self._set(parameters)
            self.config = self._configure()
        except InputError:
            self._set(before)
            raise
        return self

    def _set(self, parameters: Mapping[str, Any]) -> None:
        for name, value in parameters.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items() if value not in (None, "default")}
        return f"Ranker({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def fit(
        self,
        log: ClickLog,
        validation: RankingDataset | None = None,
        propensities: Propensities | Path | str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from a log.

        Args:
            log: By session; learners that do not need each session's own clicks take an aggregated log as well.
            validation: Labelled queries by which the best policy is chosen; None = by the clicks on held-out queries.
            propensities: Examination by position, for learners that take it; or the file that holds it.
            progress: Called after each step with its number and what was measured.
        """
        if propensities is not None and not self.config.learner_class.takes_propensities:
            raise InputError(f"propensities: {self.config.learner} does not take any")
        if isinstance(propensities, Path | str):
            propensities = read_propensities(Path(propensities))
        request = FitRequest(
            TrainingLog.of(log, propensities),
            self.config,
            None if validation is None else _validation_on(validation, log),
            provenance={"preset": self.preset},
        )
        result = fit(request, progress)
        if result.outcome == "interrupted":
            raise KeyboardInterrupt
        self.result_: TrainingResult = result
        return self

    @property
    def policy_(self) -> RankingPolicy:
        """The best policy, once fitted."""
        return self._best.policy

    @property
    def best_score_(self) -> float | None:
        """The validation score of the best policy; None where nothing validated it."""
        return self._best.score

    @property
    def _best(self) -> Best:
        if not hasattr(self, "result_"):
            raise InputError("this Ranker is not fitted yet; call fit(log) first")
        assert self.result_.best is not None, "a run that ends by itself has been validated"
        return self.result_.best

    def rank(self, candidates: Candidates, k: int = 10, sample_seed: int | None = None) -> Ints:
        """[n_queries, k] the candidate indices of the best documents of each query, −1 after the last one.

        Args:
            candidates: What to rank.
            k: Length of the lists.
            sample_seed: Draw each document from the policy instead of taking the best; None = the best.
        """
        policy = self.policy_ if sample_seed is None else self.policy_.sampled(sample_seed)
        return policy.rank(candidates, k)

    def rank_ids(self, candidates: Candidates, k: int = 10, sample_seed: int | None = None) -> Strings:
        """[n_queries, k] as `rank`, with document ids; "" after the last one.

        A document without an id is named by its number within the query, from 1.
        """
        ranking = self.rank(candidates, k, sample_seed)
        names = document_names(candidates).to_numpy().astype("U")
        rows = candidates.offsets[:-1, None] + ranking
        ids: Strings = names[rows.clip(0, max(len(names) - 1, 0))]
        ids[ranking < 0] = ""
        return ids

    def assess(self, log: ClickLog, k: int | None = None) -> OffPolicyEvaluation:
        """Evaluate the policy off-policy: what would it gain over the logging policy? No labels are needed.

        Args:
            log: Best one that it was not fitted on. Of the log that it was fitted on, just the held-out queries count.
            k: How many of its documents are compared with the log; None = 10, or the length of the log's lists.
        """
        return assess(self.policy_, log, k, self.result_.provenance)

    def save(self, folder: Path | str) -> None:
        """Write the model to a folder; `Ranker.load` reads it, and so do `cuolr rank` and `cuolr evaluate`."""
        save_policy(self.policy_, folder, self.result_.provenance)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read a model that `save` or `cuolr train` wrote, with its provenance.

        It knows the settings that it was trained with, and its own log, so that `assess` uses held-out queries.
        """
        policy, provenance = load_policy(folder), provenance_of(folder)
        trained = provenance.get("training", {})
        ranker = cls(**_parameters_of(provenance))
        best = Best(policy, trained.get("validation"), trained.get("step", 0))
        ranker.result_ = TrainingResult(best, trained.get("steps", 0), "finished", {}, provenance)
        return ranker


def _validation_on(validation: RankingDataset, log: ClickLog) -> Validation:
    expected, given = log.candidates.n_features, validation.candidates.n_features
    if given != expected:
        raise InputError(f"validation: expected documents of {expected} features, as in the log, found {given}")
    return Validation(score_on(validation), {"measure": "ndcg@10"})


def _parameters_of(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The constructor's parameters, as far as a model's provenance records them."""
    settings = provenance.get("settings")
    if not settings:
        return {}
    learner = {f"learner.{name}": value for name, value in settings["learner"].items() if name != "name"}
    training = {f"training.{name}": value for name, value in settings["training"].items()}
    return {
        "learner": settings["learner"]["name"],
        "preset": provenance.get("preset", "default"),
        "settings": learner | training,
    }
