"""The studies: that they run, and what they write down."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from cuolr import fit_ranksvm, generate_splits
from cuolr.clicks.pbm import EYE_TRACKING
from cuolr.evaluation.significance import compare, holm
from cuolr.experiments.results import Description, Results, name_of
from cuolr.experiments.results_folder import ResultsFolder, read_results
from cuolr.experiments.spec import Cell
from cuolr.experiments.spec_file import parse_experiment
from cuolr.off_policy.gain_estimate import GainByEstimator
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.types import Doubles
from studies import gain_coverage, head_and_tail, recommendations, shop
from studies.context_coverage import Devices
from studies.coverage_tables import markdown, saved_runs
from studies.gain_coverage import Queries, Setting, Size
from studies.head_and_tail import pooled, verdict
from studies.overview_figure import DARK, LIGHT, OUT, Numbers, figure
from studies.wins import Column, best_baseline, columns, duels, print_grid, shares_of_skyline, tally, with_others
from tests.experiments.made_up import DATA, made_up_result


@pytest.mark.slow
def test_intervals_hold_the_true_gain_of_users_of_two_devices() -> None:
    devices = Devices.of()
    pairs = [devices.estimates(10_000, seed) for seed in range(1, 21)]
    for found in zip(*pairs, strict=True):
        assert sum(each.covered for each in found) >= 18


@pytest.mark.thorough
def test_a_ranker_that_changes_nothing_gains_nothing() -> None:
    devices = Devices.of(queries=30)
    same = Devices(devices.data, devices.logger, devices.logger)  # type: ignore[arg-type]
    known, unknown = same.estimates(500, seed=1)
    assert [known.true, known.gain, unknown.gain] == pytest.approx([0, 0, 0], abs=1e-9)


# Attractiveness of a document of grade 0, 1 or 2.
ATTRACTIVE = np.array([0.1, 0.4, 1.0])
TRAIN = generate_splits("tiny", 60, 10, 10, seed=3)[0]


def test_the_true_gain_is_of_the_models_own_lists() -> None:
    """Under PBM, by hand: the examination of each position times the attractiveness of its document."""
    production, policy = (fit_ranksvm(TRAIN, fraction, seed=1) for fraction in (0.1, 1.0))
    clicks = {"policy": 0.0, "production": 0.0}
    for query in range(60):
        of_query = TRAIN.select(np.array([query]))
        attractive = ATTRACTIVE[of_query.relevance]
        for name, ranker in (("policy", policy), ("production", production)):
            order = [d for d in ranker.rank(of_query.candidates, 5)[0] if d >= 0]
            clicks[name] += float((attractive[order] * EYE_TRACKING[: len(order)]).sum())
    expected = clicks["policy"] / clicks["production"] - 1
    assert expected > 0.01
    assert recommendations.true_gain(TRAIN, policy, production, "pbm", 5) == pytest.approx(expected)


def test_a_row_has_both_recommendations_and_the_true_gain() -> None:
    keep = GainByEstimator("pbm", 0.02, (-0.049, 0.09), (-0.049, 0.09))
    own = OffPolicyEvaluation(47, 10, False, 0.13, 0.87, 0.02, (-0.049, 0.09), (keep,), 0.15, 0.99, identifiable=False)
    test = GainByEstimator("pbm", 0.098, (0.078, 0.117), (0.078, 0.117))
    second = replace(own, queries=471, gain=0.098, interval=(0.078, 0.117), estimates=(test,))
    [row] = recommendations.rows_of(
        iter([recommendations.Evaluated(recommendations.LOGGERS[0], "pbm", own, second, 0.119)])
    )
    assert row[:4] == ["weak logger, PBM", "13%", "87%", "15%"]
    assert row[4:] == ["keep: +2.0% (-4.9% to +9.0%)", "test: +9.8% (+7.8% to +11.7%)", "+11.9%"]


NUMBERS = Numbers(
    sessions=12_000,
    rates=(0.2, 0.2, 0.1, 0.2, 0.05, 0.1),
    examination=tuple((value, value - 0.05, value + 0.05) for value in (1.0, 0.7, 0.5, 0.4, 0.3, 0.2)),
    corrected=tuple((value, value - 0.1, value + 0.1) for value in (0.2, 0.3, 0.2, 0.5, 0.2, 0.4)),
    ranking=(3, 5, 1, 0, 2, 4),
    gain=(0.06, -0.031, 0.14),
    recommendation="test",
)


def words(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter() if "text" in element.tag]


def test_the_figure_says_the_numbers_in_both_palettes() -> None:
    svg = figure(NUMBERS)
    assert "12,000 sessions: what was" in words(svg)
    assert "test: +6 % clicks (−3 % to +14 %)" in words(svg)
    assert [word for word in words(svg) if word in "ABCDEF"][-12:] == list("DDFFBBAACCEE")
    assert all(colour in svg for colour in {**LIGHT, **DARK}.values())


@pytest.mark.parametrize("panel", range(5))
def test_nothing_is_drawn_outside_of_its_panel(panel: int) -> None:
    groups = [element for element in ElementTree.fromstring(figure(NUMBERS)).iter() if element.tag.endswith("}g")]
    width = float(groups[panel][0].attrib["width"])
    for bar in groups[panel][1:]:
        if bar.tag.endswith("rect"):
            assert 0 <= float(bar.attrib["x"]) + float(bar.attrib["width"]) <= width


def test_the_figure_of_the_pages_was_drawn_by_this_code() -> None:
    drawn, written = figure(NUMBERS), OUT.read_text(encoding="utf-8")
    assert (
        written.partition("<style>")[2].partition("</style>")[0]
        == drawn.partition("<style>")[2].partition("</style>")[0]
    )
    assert [word for word in words(written) if word.isalpha()].count("production") == 2


SMALL = Size(queries=12, documents=10, sessions=40, training_sessions=40, truth=50, steps=1)


def test_swapped_neighbours_change_places_and_no_others() -> None:
    setting = Setting("pbm", "swaps", SMALL, Queries(10))
    data = setting.queries.draw(3, 9)
    production = setting.production(data)
    assert isinstance(production, LinearPolicy)
    plain = production.rank(data.candidates, 10)
    other = gain_coverage.swapped(production, 2).rank(data.candidates, 10)
    assert other[:, [0, 1, 3, 2, 4, 5, 6, 7, 8, 9]].tolist() == plain.tolist()


def test_the_clicks_of_production_are_those_of_its_log() -> None:
    """The closed form against a simulated log of the same queries."""
    for logger in ("swaps", "plackett-luce-1", *gain_coverage.CHANGED):
        setting = Setting("dcm", logger, Size(queries=40, documents=12), Queries(12))
        data = setting.queries.draw(40, 9)
        production = setting.production(data)
        expected = setting.production_clicks(data, production)
        assert setting.log(data, production, 3, 500).clicks.sum(axis=1).mean() == pytest.approx(expected, rel=0.03)


def test_production_that_changed_shows_the_later_ranker_in_the_second_half_of_the_log() -> None:
    for logger in gain_coverage.CHANGED:
        setting = Setting("pbm", logger, Size(queries=40, documents=12), Queries(12))
        data = setting.queries.draw(40, 9)
        production = setting.production(data)
        log = setting.log(data, production, 3, 20)
        later = setting.shown(production)[1][0]
        assert isinstance(later, LinearPolicy)
        of_query = later.rank(data.candidates, 10)
        is_later = (log.ranking == of_query[log.query]).all(axis=1)
        assert is_later[400:].all()
        assert is_later[:400].mean() < 0.5
        first = np.unique(np.column_stack([log.query, log.ranking])[:400], axis=0)
        assert (len(first) <= 40) == (logger == "changed")
        assert log.logging_propensity is None


@pytest.mark.thorough
def test_a_run_continues_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "coverage.parquet"
    gain_coverage.main(out, ("pbm",), ("plackett-luce-1",), 1, first=3, size=SMALL)
    first = saved_runs(out)
    gain_coverage.main(out, ("pbm",), ("plackett-luce-1",), 2, first=3, size=SMALL)
    lines = saved_runs(out)
    assert lines[:4] == first
    assert [(line["log"], line["policy"]) for line in lines] == [
        (number, policy) for number in (3, 4) for policy in ("better", "worse", "default", "logger")
    ]
    assert all(np.isfinite(line["truth"]) for line in lines)
    assert "8 runs: 2 logs of each of 1 settings." in capsys.readouterr().out


def line_of(truth: float, interval: tuple[float, float], recommendation: str, **more: Any) -> dict[str, Any]:
    """A run; of PBM users and random lists, if not said otherwise."""
    known = {"users": "pbm", "logger": "plackett-luce-1", "log": 0, "policy": "better", "identifiable": True}
    found = {"truth": truth, "interval": interval, "gain": sum(interval) / 2, "recommendation": recommendation}
    return {**known, **found, **more}


def test_the_tables_count_what_was_reached_and_name_what_was_not() -> None:
    runs = [line_of(0.08, (0.02, 0.1), "ship", log=number) for number in range(45)]
    runs += [
        line_of(0.08, (-0.01, 0.2), "test", log=45),
        line_of(-0.01, (0.002, 0.01), "ship", log=45, policy="worse"),
        line_of(0.0, (-0.5, 0.5), "keep", logger="swaps", users="trust", identifiable=False),
    ]
    text = "\n".join(markdown(runs))
    assert "48 runs: 1 to 46 logs of each of 2 settings." in text
    # 46 of 47 intervals of identifiable logs, 47 of 48 in all, 1 of 2 wrong recommendations, 45 of 46 large gains.
    assert "| PBM | 46 of 47 (88.7%–99.9%) | 46 of 47 (88.7%–99.9%) | 1 of 1 (2.5%–100.0%) | 45 of 46" in text
    assert "| trust bias | – | 1 of 1 (2.5%–100.0%) | 0 of 1 (0.0%–97.5%) | – |" in text
    assert "| **all** | 46 of 47 (88.7%–99.9%) | 47 of 48 (88.9%–99.9%) | 1 of 2 (1.3%–98.7%) | 45 of 46" in text
    assert "Intervals without the truth: 1.\n" in text
    assert text.count("| PBM | plackett-luce-1 | 46 | worse | -1.0% | ship, +0.6% (+0.2% to +1.0%) |") == 2
    assert "| PBM | plackett-luce-1 | 46 | better | +8.0% | test, +9.5% (-1.0% to +20.0%) |" in text
    few = "\n".join(markdown(runs[-1:]))
    assert "| trust bias | swaps | 1 | better | +0.0% | keep, +0.0% (-50.0% to +50.0%) |" in few
    missed = [line_of(0.08, (low / 100, 0.2), "test", log=log) for log, low in enumerate([*range(-20, 21), *[-30] * 2])]
    many = "\n".join(markdown([*runs, *missed]))
    assert "| PBM | plackett-luce-1 | better | 44 | +8.0% | +9.5% (-1.0% to +20.0%) |" in many
    assert "plackett-luce-1 | 46 | better" not in many


@pytest.mark.parametrize(
    ("difference", "error", "expected"),
    [(-0.0017, 0.002, "non-inferior"), (-0.0018, 0.002, "undecided"), (-0.0084, 0.002, "inferior")],
)
def test_bounds_are_compared_with_the_margin(difference: float, error: float, expected: str) -> None:
    """1.645 · .002 = .00329."""
    assert verdict(difference, error) == expected


def test_seeds_of_a_cell_are_pooled() -> None:
    assert pooled([[0.01, 0.003]]) == (0.01, 0.003)
    assert pooled([[0.01, 0.03], [0.01, 0.04]]) == pytest.approx((0.01, 0.05 / 2)), "the error of queries"
    assert pooled([[0.01, 0.003], [0.03, 0.004]]) == pytest.approx((0.02, 0.01)), "the error between seeds"


@pytest.mark.thorough
def test_a_run_over_head_and_tail_continues_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "grid.jsonl"
    cells = {"queries": (30,), "sessions": (2,), "loggers": ("weak",), "users": ("pbm",), "steps": 1}
    head_and_tail.main(out, seeds=1, **cells)  # type: ignore[arg-type]
    first = out.read_text()
    head_and_tail.main(out, seeds=1, **cells)  # type: ignore[arg-type]
    assert out.read_text() == first
    assert json.loads(first)["cell"] == [30, 2, "weak", "pbm"]
    assert "against LOGGING" in capsys.readouterr().out


def test_the_shop_is_ranked_best_by_its_attractiveness() -> None:
    """The production ranker is at about .7, as one that knows three of eight features should be."""
    fresh = shop.Shop.draw(200, seed=1, stream=2)
    assert 0.6 < fresh.ndcg(fresh.production()).mean() < 0.8


def test_the_log_of_the_shop_is_of_production() -> None:
    drawn = shop.Shop.draw(50, seed=1, stream=1)
    log = drawn.log("pbm", 300, seed=1)
    assert log.ranking.tolist() == drawn.production().rank(drawn.candidates, shop.K)[log.query].tolist()
    assert 0 < log.clicks.mean() < 0.5


QUERIES = 40
# What each method adds to a query's value; IPW is the better one on test, DLA on validation.
LEVEL = {"LOGGING": 0.0, "SKYLINE": 0.2, "naive": 0.05, "IPW": 0.15, "DLA": 0.1, "factored": 0.19}
VALIDATION = {"naive": 0.5, "IPW": 0.6, "DLA": 0.7, "factored": 0.65}
LEARNERS = {"LOGGING": "logging", "SKYLINE": "skyline", "factored": "factored"}
EXPERIMENT = parse_experiment(
    {
        "title": "Wins",
        "seeds": 2,
        "measures": ["ndcg@10", "err@10"],
        "method": {name: {"learner": LEARNERS.get(name, name.lower())} for name in LEVEL},
        "grid": [{"click_model": ["pbm", "dcm"], "method": list(LEVEL)}],
    }
)


def values_of(cell: Cell, measure: str) -> Doubles:
    seed = [cell.seed, *cell.method.encode(), *cell.click_model.encode(), *measure.encode()]
    values = 0.4 + LEVEL[cell.method] + np.random.default_rng(seed).normal(0, 0.05, QUERIES)
    values[3] = np.nan  # nothing relevant
    return values


@pytest.fixture
def results(tmp_path: Path) -> Results:
    folder, cells = ResultsFolder(tmp_path), EXPERIMENT.cells([])
    names = {cell: name_of(cell, {}) for cell in cells}
    folder.start(Description(EXPERIMENT, {**DATA, "folds": []}, {}, names))
    for cell in cells:
        made_up = made_up_result(cell, {measure: values_of(cell, measure) for measure in EXPERIMENT.measures})
        folder.finish(name_of(cell, {}), replace(made_up, notes={"validation": VALIDATION.get(cell.method, 0.0)}))
    return read_results(tmp_path)


@pytest.fixture
def found(results: Results) -> list[Column]:
    return list(columns(results))


def test_the_best_baseline_is_chosen_by_validation_and_is_never_ours_or_a_reference_ranker(
    results: Results, found: list[Column]
) -> None:
    assert [best_baseline(results, column) for column in found] == ["DLA", "DLA"]


def test_queries_are_compared_after_the_mean_over_seeds_and_corrected_together(found: list[Column]) -> None:
    family = duels(found, ["IPW", "DLA"])
    assert len(family) == 2 * 2
    expected = []
    for column, other in zip(found, ["IPW", "DLA"], strict=True):
        for measure in ("ndcg@10", "err@10"):
            ours, theirs = (
                np.mean([run.per_query[measure] for run in column.runs[name].values()], axis=0)
                for name in ("factored", other)
            )
            expected.append(compare(ours, theirs, seed=0))
    assert [duel.comparison for duel in family] == expected
    assert expected[0].queries == QUERIES - 1
    assert [duel.p_value for duel in family] == holm([comparison.t_test for comparison in expected])


def test_what_is_behind_is_counted_before_the_correction_too(found: list[Column]) -> None:
    behind = [duel for duel in duels(found, ["SKYLINE", "SKYLINE"]) if duel.comparison.difference < 0]
    unsure = [replace(behind[0], comparison=replace(behind[0].comparison, t_test=0.03), p_value=0.3)]
    assert "Ahead in 0 of 1, significantly in 0; significantly behind in 0 (without correction 1)" in tally(unsure)


def test_the_share_of_skyline_is_from_the_means(found: list[Column]) -> None:
    for column, share in zip(found, shares_of_skyline(found), strict=True):
        ours, skyline, logging = (
            np.mean([np.nanmean(run.per_query["ndcg@10"]) for run in column.runs[name].values()])
            for name in ("factored", "SKYLINE", "LOGGING")
        )
        assert share == pytest.approx((ours - logging) / (skyline - logging))
        assert share == pytest.approx(0.95, abs=0.1)


def test_the_tables_show_every_method_and_every_duel(
    results: Results, found: list[Column], capsys: pytest.CaptureFixture[str]
) -> None:
    print_grid(results, found)
    told = capsys.readouterr().out
    for method in LEVEL:
        assert f"| {method} | " in told
    assert told.count("| PBM: DLA | ") == told.count("| DCM: naive | ") == told.count("| DCM: LOGGING | ") == 2


def test_before_ours_has_run_there_are_means_alone(
    results: Results, found: list[Column], capsys: pytest.CaptureFixture[str]
) -> None:
    without = [
        replace(column, runs={m: runs for m, runs in column.runs.items() if m != "factored"}) for column in found
    ]
    print_grid(results, without)
    assert "factored has not run" in capsys.readouterr().out


def test_runs_with_other_settings_take_the_place_of_the_default_on_the_same_log(
    results: Results, found: list[Column]
) -> None:
    cell = next(c for c in results.cells if (c.method, c.click_model) == ("IPW", "pbm"))
    another_log = replace(cell, logging="strong", click_model="dcm")
    others = replace(results, cells={cell: results.cells[cell], another_log: results.cells[cell]})
    pbm, dcm = (with_others(column, others) for column in found)
    assert pbm.runs["factored"][cell.fold, cell.seed] is results.cells[cell]
    assert len(pbm.runs["factored"]) == 2
    assert dcm.runs == found[1].runs
