"""Learning to rank from click logs, whatever the click model.

>>> import cuolr
>>> log = cuolr.load_click_log("LOG")                             # doctest: +SKIP
>>> ranker = cuolr.Ranker(learner="cql", steps=500).fit(log)      # doctest: +SKIP
>>> ranking = ranker.rank(cuolr.read_candidates("documents.txt")) # doctest: +SKIP
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuolr.clicks.click_model import click_model as click_model
    from cuolr.clicks.simulate import simulate as simulate
    from cuolr.data.candidate_reader import read_candidates as read_candidates
    from cuolr.data.feature_options import FeatureOptions as FeatureOptions
    from cuolr.data.feature_tables import FeatureTables as FeatureTables
    from cuolr.data.letor.reader import read_letor as read_letor
    from cuolr.data.synthetic import generate_splits as generate_splits
    from cuolr.errors import InputError as InputError
    from cuolr.estimator import Ranker as Ranker
    from cuolr.evaluation.evaluate import evaluate as evaluate
    from cuolr.examination.diagnosis import diagnose as diagnose
    from cuolr.logs.aggregate import aggregate as aggregate
    from cuolr.logs.clicklog import ClickLog as ClickLog
    from cuolr.logs.deletion import SessionsToDelete as SessionsToDelete
    from cuolr.logs.deletion import delete_sessions as delete_sessions
    from cuolr.logs.hashed_ids import IdKey as IdKey
    from cuolr.logs.importing.import_log import import_log as import_log
    from cuolr.logs.importing.import_log import import_log_with_report as import_log_with_report
    from cuolr.logs.importing.import_options import ImportOptions as ImportOptions
    from cuolr.logs.log_folder import load_click_log as load_click_log
    from cuolr.logs.log_folder import save_click_log as save_click_log
    from cuolr.logs.merge import merge_logs as merge_logs
    from cuolr.logs.time_window import TimeWindow as TimeWindow
    from cuolr.logs.time_window import split_by_time as split_by_time
    from cuolr.off_policy.assess import assess as assess
    from cuolr.off_policy.judgments import judgments as judgments
    from cuolr.policies.model_folder import load_policy as load_policy
    from cuolr.policies.model_folder import save_policy as save_policy
    from cuolr.policies.rank_one import rank_one as rank_one
    from cuolr.supervised.ranksvm import fit_ranksvm as fit_ranksvm
    from cuolr.types import Candidates as Candidates
    from cuolr.types import RankingDataset as RankingDataset

__version__ = "1.0.0"

# Where each name is found once it is asked for, so that `import cuolr` is quick and does not load torch.
_HOMES = {
    "Candidates": "cuolr.types",
    "ClickLog": "cuolr.logs.clicklog",
    "FeatureOptions": "cuolr.data.feature_options",
    "FeatureTables": "cuolr.data.feature_tables",
    "IdKey": "cuolr.logs.hashed_ids",
    "ImportOptions": "cuolr.logs.importing.import_options",
    "InputError": "cuolr.errors",
    "Ranker": "cuolr.estimator",
    "RankingDataset": "cuolr.types",
    "SessionsToDelete": "cuolr.logs.deletion",
    "TimeWindow": "cuolr.logs.time_window",
    "aggregate": "cuolr.logs.aggregate",
    "assess": "cuolr.off_policy.assess",
    "click_model": "cuolr.clicks.click_model",
    "delete_sessions": "cuolr.logs.deletion",
    "diagnose": "cuolr.examination.diagnosis",
    "evaluate": "cuolr.evaluation.evaluate",
    "fit_ranksvm": "cuolr.supervised.ranksvm",
    "generate_splits": "cuolr.data.synthetic",
    "import_log": "cuolr.logs.importing.import_log",
    "import_log_with_report": "cuolr.logs.importing.import_log",
    "judgments": "cuolr.off_policy.judgments",
    "load_click_log": "cuolr.logs.log_folder",
    "load_policy": "cuolr.policies.model_folder",
    "merge_logs": "cuolr.logs.merge",
    "rank_one": "cuolr.policies.rank_one",
    "read_candidates": "cuolr.data.candidate_reader",
    "read_letor": "cuolr.data.letor.reader",
    "save_click_log": "cuolr.logs.log_folder",
    "save_policy": "cuolr.policies.model_folder",
    "simulate": "cuolr.clicks.simulate",
    "split_by_time": "cuolr.logs.time_window",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cuolr' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
