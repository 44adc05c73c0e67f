"""The whole of training in one object, in the manner of scikit-learn."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.assess import Readiness, assess, assess_on_own_log, digest_of_clicks
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.store import save_policy
from cuolr.training.fit import fit
from cuolr.training.loop import Progress, TrainingResult, policy_validation
from cuolr.training.presets.configure import configure, usual_learner
from cuolr.types import Candidates, Ints, RankingDataset


class Ranker:
    """Learns to rank from a click log.

    Attributes:
        preset: Where settings come from that are not given.
        config: All settings of the run.
        result_: How training went, once fitted.
    """

    def __init__(
        self,
        learner: str | None = None,
        preset: str = "default",
        steps: int | None = None,
        batch_size: int | None = None,
        seed: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Settings are checked at once.

        Args:
            learner: Its name, see `cuolr list`; None = factored, and cql with the paper's preset.
            preset: Where settings come from that are not given: `default` or `paper`.
            steps: Number of updates.
            batch_size: Lists in a batch, for learners that learn by batches.
            seed: The same seed gives the same policy.
            settings: Others by name, such as `{"learner.encoder": "position"}`.
        """
        given = {"training.steps": steps, "training.batch_size": batch_size, "training.seed": seed}
        given = {name: value for name, value in given.items() if value is not None}
        self.preset = preset
        self.config = configure(learner or usual_learner(preset), preset, {**given, **(settings or {})})
        if batch_size is not None and not self.config.learner_class.learns_by_batch:
            raise InputError(f"batch_size={batch_size}: {self.config.learner} does not learn by batches; leave it away")

    def fit(self, log: ClickLog, validation: RankingDataset | None = None, progress: Progress | None = None) -> Self:
        """Learn from a log.

        Args:
            log: As it is; all learners but the default, and others that need each session's own clicks, take an
                aggregated one as well.
            validation: Labelled queries by which the best policy is chosen; None = by sessions of held-out queries.
            progress: Called after each step with its number and what was measured.
        """
        validate, validated_by = None, None
        if validation is not None:
            expected, found = log.candidates.n_features, validation.candidates.n_features
            if found != expected:
                raise InputError(f"validation: expected documents of {expected} features, as in the log, found {found}")
            validate, validated_by = policy_validation(score_on(validation)), {"measure": "ndcg@10"}
        provenance = {"preset": self.preset, "log": {"clicks_sha256": digest_of_clicks(log)}}
        result = fit(log, self.config, validate, validated_by, progress=progress, provenance=provenance)
        if result.outcome == "interrupted":
            raise KeyboardInterrupt
        self.result_: TrainingResult = result
        return self

    @property
    def policy_(self) -> RankingPolicy:
        """The best policy, once fitted."""
        if not hasattr(self, "result_"):
            raise InputError("nothing is learned yet; call fit(log) first")
        assert self.result_.best is not None, "a run that ends by itself has been validated"
        return self.result_.best.policy

    def rank(self, candidates: Candidates, k: int = 10, sample_seed: int | None = None) -> Ints:
        """[n_queries, k] the slots of the best documents of each query, −1 after the last one.

        Args:
            candidates: What to rank.
            k: Length of the lists.
            sample_seed: Draw each document from the policy instead of taking the best; None = the best.
        """
        policy = self.policy_ if sample_seed is None else self.policy_.sampled(sample_seed)
        return policy.rank(candidates, k)

    def assess(self, log: ClickLog, k: int | None = None) -> Readiness:
        """What a log says of the policy, without labels: its `verdict` is to ship it, to test it, or to keep what is.

        Args:
            log: Best one that it was not fitted on, nor on a part of it. Of the one that it was fitted on, just the
                queries that were held out are looked at.
            k: How many of its documents are looked for in the log; None = 10, or as many as the log's lists have.
        """
        policy, provenance = self.policy_, self.result_.provenance
        if digest_of_clicks(log) != provenance["log"]["clicks_sha256"]:
            return assess(policy, log, k)
        return assess_on_own_log(policy, log, provenance["settings"], k)

    def save(self, folder: Path | str) -> None:
        """Write the policy to a folder; `cuolr.load_policy` reads it, and so do `cuolr rank` and `cuolr evaluate`."""
        save_policy(self.policy_, folder, self.result_.provenance)
