"""`cuolr compare`: is one model better than another?"""

from dataclasses import asdict
from pathlib import Path

import tyro

from cuolr.cli.options import DataOptions, MeasureOptions, as_model_takes
from cuolr.cli.terminal import progress_bar, show_json, show_table
from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import Evaluation, evaluate
from cuolr.evaluation.measures import what_counts
from cuolr.evaluation.significance import Comparison, holm, stars
from cuolr.evaluation.significance import compare as compare_values
from cuolr.policies.model_folder import load_policy
from cuolr.policies.policy import RankingInParts
from cuolr.random import DEFAULT_SEED


def compare(
    models: tyro.conf.Positional[tuple[Path, ...]],
    data: Path,
    measured: MeasureOptions = MeasureOptions(),
    seed: int = DEFAULT_SEED,
    json: bool = False,
    data_options: DataOptions = DataOptions(),
) -> None:
    """Compare models with the first one on labelled queries, with paired significance tests.

    p values are corrected by Holm's method over all comparisons of the table. * is p < 0.05 and ** is p < 0.01, by the
    paired t-test.

    Args:
        models: Folders of two or more saved models.
        data: Folder of a labelled data set, or one LETOR file.
        measured: What to measure.
        seed: Seed of the permutation test and the bootstrap.
        json: Print JSON instead of a table.
        data_options: How to read the data set.
    """
    if len(models) < 2:
        raise InputError(f"expected at least two models to compare, found {len(models)}")
    check_arguments(**{"--seed": (seed, Range(0))})
    queries = data_options.load_labelled(data, measured.split, measured.names)
    policies = [load_policy(model) for model in models]
    evaluations = []
    with progress_bar("ranking", len(policies) * queries.candidates.n_queries) as progress:
        for policy in policies:
            as_taken = as_model_takes(queries, policy.n_features, data)
            ranker = RankingInParts(policy, progress)
            evaluations.append(evaluate(ranker, as_taken, measured.names, measured.without_relevant))
    first = evaluations[0]
    pairs = [(measure, other) for measure in first.per_query for other in range(1, len(models))]
    comparisons = [
        compare_values(evaluations[other].per_query[measure], first.per_query[measure], seed)
        for measure, other in pairs
    ]
    corrected_t = holm([comparison.t_test for comparison in comparisons])
    corrected_permutation = holm([comparison.permutation_test for comparison in comparisons])
    rows = list(zip(pairs, comparisons, corrected_t, corrected_permutation, strict=True))
    if json:
        described = [
            {"measure": measure, "model": str(models[other]), "against": str(models[0])}
            | asdict(comparison)
            | {"t_test_holm": p_t, "permutation_test_holm": p_permutation}
            for (measure, other), comparison, p_t, p_permutation in rows
        ]
        means = {str(model): evaluation.means() for model, evaluation in zip(models, evaluations, strict=True)}
        show_json({"measures": means, "comparisons": described, "without_relevant": measured.without_relevant})
        return
    lines = [
        _line(measure, models[other], evaluations[other], comparison, p_t, p_permutation)
        for (measure, other), comparison, p_t, p_permutation in rows
    ]
    means_of_first = ", ".join(f"{measure} {value:.4f}" for measure, value in first.means().items())
    columns = ["model", "measure", "mean", "difference", "95 % interval", "p (t)", "p (permutation)", "win/tie/loss"]
    counted = what_counts(measured.without_relevant, first.per_query)
    caption = (
        f"{len(first.query_ids):,} queries; {first.n_without_relevant:,} without a relevant document, {counted}; "
        "p values corrected by Holm's method over the table; * p < 0.05, ** p < 0.01 (t)"
    )
    show_table(f"against {models[0]} ({means_of_first})", columns, lines, caption, left=(0, 1))


def _line(
    measure: str, model: Path, evaluation: Evaluation, comparison: Comparison, p_t: float, p_permutation: float
) -> list[str]:
    low, high = comparison.interval
    return [
        str(model),
        measure,
        f"{evaluation.means()[measure]:.4f}",
        f"{comparison.difference:+.4f}{stars(p_t)}",
        f"{low:+.4f} to {high:+.4f}",
        _p_value(p_t),
        _p_value(p_permutation),
        f"{comparison.wins}/{comparison.ties}/{comparison.losses}",
    ]


def _p_value(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "< 0.0001"
