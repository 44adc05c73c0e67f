"""A scikit-learn style estimator that learns to rank from a click log."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.frames import Table
from cuolr.errors import InputError, require_type
from cuolr.evaluation.evaluate import OF_LABELS, score_on
from cuolr.examination.propensities import Propensities, read_propensities
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.assess import OF_LOGS, assess
from cuolr.off_policy.position_discount import Discount
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from cuolr.policies.model_folder import load_policy, provenance_of, save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.rank_one import Documents, RankedDocuments, rank_one
from cuolr.training.fit import FitRequest, Validation, fit
from cuolr.training.log_form import TrainingLog
from cuolr.training.loop import Best, Progress, TrainingResult
from cuolr.training.presets.configure import RunConfig, check_used, configure, usual_learner
from cuolr.training.warm_start import WarmStart
from cuolr.types import Candidates, Ints, RankingDataset, Strings

PARAMETERS = ("learner", "preset", "steps", "batch_size", "seed", "settings")


class Ranker:
    """Learns to rank from a click log.

    It follows scikit-learn's conventions: parameters are set by the constructor and read by `get_params`, names of
    learned attributes end in an underscore, and `sklearn.base.clone` returns an unfitted copy.

    Attributes:
        config: All settings of the run.
        result_: The result of training, once fitted.
        policy_: The best policy, once fitted.
        best_score_: The validation score of the best policy.
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
        """Set and check the parameters.

        Args:
            learner: A registered name, or an instance of a learner's `Config`; None = factored, or cql with the preset
                `paper`.
            preset: Preset for settings that are not given: `default` or `paper`.
            steps: Number of training steps.
            batch_size: Number of lists in a batch, for learners that train on batches.
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
        if self.settings is not None:
            require_type("settings", self.settings, Mapping, "give settings by name, {'training.held_out': 0.2}")
        require_type("preset", self.preset, str, "give a name, such as 'paper'")
        given = {"training.steps": self.steps, "training.batch_size": self.batch_size, "training.seed": self.seed}
        given = {name: value for name, value in given.items() if value is not None}
        for name in given.keys() & (self.settings or {}).keys():
            parameter = name.removeprefix("training.")
            raise InputError(f"settings: '{name}' is given by the parameter {parameter}, too; give it once")
        learner = usual_learner(self.preset) if self.learner is None else self.learner
        config = configure(learner, self.preset, {**given, **(self.settings or {})})
        if self.batch_size is not None:
            check_used(config.learner, "batch_size", f"batch_size={self.batch_size}")
        return config

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters by name; `deep` is for compatibility with scikit-learn and has no effect."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters of the constructor; the fitted policy stays until the next `fit`."""
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
        warm_start: "Ranker | Path | str | None" = None,
    ) -> Self:
        """Learn from a log.

        Args:
            log: A log of sessions; learners that do not need the clicks of each session also take an aggregated log.
            validation: Labelled queries for choosing the best policy; None = choose by the clicks or
                rewards on held-out queries.
            propensities: Propensities, or a file of them, for learners that take them.
            progress: Called after each step with its number and the logged values.
            warm_start: A fitted `Ranker` of the same learner, or the folder of its model, to start from; None = start
                anew. From a folder of `cuolr train`, critics start from its checkpoint, too.
        """
        require_type("log", log, ClickLog, OF_LOGS)
        if propensities is not None:
            check_used(self.config.learner, "propensities", "propensities")
        if isinstance(propensities, Path | str):
            propensities = read_propensities(Path(propensities))
        if propensities is not None:
            require_type("propensities", propensities, Propensities, "a path of a file of them is accepted, too")
        request = FitRequest(
            TrainingLog.of(log, propensities),
            self.config,
            None if validation is None else _validation_on(validation, log),
            provenance={"preset": self.preset},
            warm_start=_start_of(warm_start),
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
        """The validation score of the best policy; None if it was not validated."""
        return self._best.score

    @property
    def _best(self) -> Best:
        if not hasattr(self, "result_"):
            raise InputError("this Ranker is not fitted yet; call fit(log) first")
        assert self.result_.best is not None, "a run that ends by itself has been validated"
        return self.result_.best

    def rank(
        self, candidates: Candidates | RankingDataset | Table, k: int = 10, sample_seed: int | None = None
    ) -> Ints:
        """[n_queries, k] the candidate indices of the best documents of each query, −1 after the last one.

        Args:
            candidates: The candidates to rank: as read by `read_candidates`, or a table that is read by the recipe of
                the model, with queries in the order of their first row. Or `FeatureTables`.
            k: Length of the rankings.
            sample_seed: Seed for sampling each document from the policy; None = take the best.
        """
        candidates = self._read(candidates)
        policy = self.policy_ if sample_seed is None else self.policy_.sampled(sample_seed)
        return policy.rank(candidates, k)

    def _read(self, candidates: Candidates | RankingDataset | Table) -> Candidates:
        if isinstance(candidates, RankingDataset):
            return candidates.candidates
        if isinstance(candidates, Candidates):
            return candidates
        if isinstance(candidates, ClickLog):
            require_type("candidates", candidates, Candidates, "those of a log are log.candidates")
        return read_candidates(candidates, n_features=self.policy_.n_features, recipe=self.policy_.recipe)

    def rank_ids(
        self, candidates: Candidates | RankingDataset | Table, k: int = 10, sample_seed: int | None = None
    ) -> Strings:
        """[n_queries, k] like `rank`, but with document ids; "" after the last one.

        A document without an id is named by its number within the query, from 1.
        """
        candidates = self._read(candidates)
        ranking = self.rank(candidates, k, sample_seed)
        names = candidates.document_names
        rows = candidates.offsets[:-1, None] + ranking
        ids: Strings = names[rows.clip(0, max(len(names) - 1, 0))]
        ids[ranking < 0] = ""
        return ids

    def rank_one(self, documents: Documents, ids: Sequence[Any] | None = None, k: int | None = None) -> RankedDocuments:
        """The ids and scores of the documents of one query, best first; see `policies.rank_one`.

        Args:
            documents: Dictionaries of features by name, with `doc_id` or without; a data frame; or an array [n, F].
            ids: Of the documents; None = `doc_id` or, without it, their numbers from 1.
            k: Length of the ranking; None = all documents.
        """
        return rank_one(self.policy_, documents, ids, k)

    def assess(
        self, log: ClickLog, k: int | None = None, against: Self | None = None, discount: Discount = None
    ) -> OffPolicyEvaluation:
        """Off-policy evaluation: estimate the gain over the logging policy, without labels.

        Args:
            log: Preferably a log that it was not fitted on; on its training log, only held-out queries are used.
            k: Length of the lists; None = as in the log.
            against: Another fitted ranker, to compare with instead of the logging policy.
            discount: What a click or a reward at each position counts: `dcg` or k weights; None = 1.
        """
        return assess(self.policy_, log, k, self.result_.provenance, against=against, discount=discount)

    def save(self, folder: Path | str) -> None:
        """Write the model to a folder, for `Ranker.load`, `cuolr rank` and `cuolr evaluate`."""
        save_policy(self.policy_, folder, self.result_.provenance)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read a model that `save` or `cuolr train` wrote, with its provenance.

        The provenance has the settings and identifies the training log, so that `assess` uses its held-out queries.
        """
        policy, provenance = load_policy(folder), provenance_of(folder)
        trained = provenance.get("training", {})
        try:
            ranker = cls(**_parameters_of(provenance))
        except (InputError, KeyError):  # its learner is not installed, or has other settings; the policy ranks as well
            ranker = cls()
        best = Best(policy, trained.get("validation"), trained.get("step", 0))
        ranker.result_ = TrainingResult(best, trained.get("steps", 0), "finished", {}, provenance)
        return ranker


def _start_of(model: Ranker | Path | str | None) -> WarmStart | None:
    if model is None:
        return None
    if isinstance(model, Path | str):
        return WarmStart.read(model)
    require_type("warm_start", model, Ranker, "a path of a model's folder is accepted, too")
    return WarmStart(model.policy_)


def _validation_on(validation: RankingDataset, log: ClickLog) -> Validation:
    require_type("validation", validation, RankingDataset, OF_LABELS)
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
    training = dict(settings["training"])
    given = {name: training.pop(name) for name in ("steps", "seed")}
    return {
        "learner": settings["learner"]["name"],
        "preset": provenance.get("preset", "default"),
        **given,
        "settings": learner | {f"training.{name}": value for name, value in training.items()},
    }
