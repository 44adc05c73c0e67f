"""What every learner that follows a gradient must do, with every state encoder where it has one."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.learners.gradient_learner import GradientLearner
from cuolr.networks.encoder import ENCODERS
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.training.base_learner import LEARNERS
from cuolr.training.batches import SessionBatch
from cuolr.training.run_folder import load_checkpoint, save_checkpoint
from cuolr.training.steps import NonFiniteLossError
from cuolr.types import Candidates
from tests.learners.lists import N_FEATURES, K, build, is_sequential, random_batch

GRADIENT = [name for name in LEARNERS.names() if issubclass(LEARNERS.get(name), GradientLearner)]
SEQUENTIAL = [name for name in GRADIENT if is_sequential(name)]
CASES = [(name, encoder) for name in SEQUENTIAL for encoder in ENCODERS.names()]
CASES += [(name, "") for name in GRADIENT if name not in SEQUENTIAL]
every_case = pytest.mark.parametrize(("name", "encoder"), CASES, ids=["-".join(filter(None, case)) for case in CASES])
every_learner = pytest.mark.parametrize("name", GRADIENT)


def built(name: str, encoder: str, **settings: Any) -> GradientLearner:
    return build(name, **settings | {"encoder": encoder}) if encoder else build(name, **settings)


def some_candidates(sizes: tuple[int, ...] = (7, 1, 3, 5, 4)) -> Candidates:
    features = np.random.default_rng(3).uniform(-1, 1, (sum(sizes), N_FEATURES)).astype(np.float32)
    return Candidates(features, np.cumsum([0, *sizes]), np.array([f"q{i}" for i in range(len(sizes))]))


def weights(learner: GradientLearner) -> dict[str, Tensor]:
    networks: dict[str, Tensor] = learner.state()["networks"]
    return networks


def assert_same(state: Any, expected: Any) -> None:
    """Two nested states are the same to the bit."""
    if isinstance(expected, dict):
        assert state.keys() == expected.keys()
        for key in expected:
            assert_same(state[key], expected[key])
    elif isinstance(expected, list | tuple):
        assert len(state) == len(expected)
        for item, expected_item in zip(state, expected, strict=True):
            assert_same(item, expected_item)
    elif isinstance(expected, Tensor):
        assert torch.equal(state, expected)
    else:
        assert state == expected


@pytest.mark.thorough
@every_case
def test_a_policy_ranks_the_same_after_save_and_load(name: str, encoder: str, tmp_path: Path) -> None:
    learner = built(name, encoder)
    learner.update(random_batch())
    policy = learner.policy()
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    for array, values in policy.arrays().items():
        np.testing.assert_array_equal(loaded.arrays()[array], values)
    assert loaded.settings() == policy.settings()
    np.testing.assert_array_equal(loaded.rank(some_candidates(), K), policy.rank(some_candidates(), K))


@every_case
def test_each_candidate_comes_once_and_then_nothing(name: str, encoder: str) -> None:
    learner = built(name, encoder)
    learner.update(random_batch())
    candidates = some_candidates()
    ranking = learner.policy().rank(candidates, K)
    assert ranking.shape == (candidates.n_queries, K)
    for row, size in zip(ranking, candidates.sizes, strict=True):
        placed = row[: min(size, K)]
        assert len(set(placed)) == len(placed)
        assert placed.min() >= 0
        assert placed.max() < size
        assert (row[len(placed) :] == -1).all()


@every_case
def test_padding_changes_nothing(name: str, encoder: str) -> None:
    narrow = random_batch(lengths=(3, 1, 2), k=3)
    pad_list = (0, 0, 0, 1)
    wide = replace(
        narrow,
        features=torch.nn.functional.pad(narrow.features, pad_list),
        rewards=torch.nn.functional.pad(narrow.rewards, (0, 1)),
        where=torch.nn.functional.pad(narrow.where, (0, 1)),
    )
    one, other = built(name, encoder), built(name, encoder)
    for _ in range(3):
        plotted, expected = one.update(wide), other.update(narrow)
        assert plotted == pytest.approx(expected, rel=1e-4, abs=1e-5)
    torch.testing.assert_close(weights(one), weights(other), rtol=1e-4, atol=2e-4)
    torch.testing.assert_close(one.held_out_scores(wide), other.held_out_scores(narrow), rtol=1e-3, atol=1e-3)


@every_learner
def test_what_stands_in_the_padding_does_not_matter(name: str) -> None:
    batch = random_batch(lengths=(4, 1, 3, 0))
    filled = replace(batch, features=batch.features.where(batch.where[:, :, None], 7.0))
    one, other = build(name), build(name)
    assert one.update(filled) == pytest.approx(other.update(batch), rel=1e-5, abs=1e-6)
    torch.testing.assert_close(one.held_out_scores(filled), other.held_out_scores(batch), rtol=1e-4, atol=1e-5)


@every_learner
@pytest.mark.parametrize("lengths", [(4, 2, 3), (1, 1), (0, 0), (0, 4)], ids=str)
def test_lists_without_clicks_leave_finite_numbers(name: str, lengths: tuple[int, ...]) -> None:
    batch = random_batch(lengths=lengths)
    batch = replace(batch, rewards=torch.zeros_like(batch.rewards))
    learner = build(name)
    for _ in range(2):
        assert all(np.isfinite(value) for value in learner.update(batch).values())
    assert all(values.isfinite().all() for values in weights(learner).values())
    assert learner.held_out_scores(batch).isfinite().all()


@pytest.mark.thorough
@every_case
def test_resuming_equals_not_stopping(name: str, encoder: str, tmp_path: Path) -> None:
    batches = [random_batch(seed, lengths=(4, 2, 3, 4)) for seed in range(4)]
    unbroken = built(name, encoder)
    for batch in batches:
        unbroken.update(batch)

    stopped = built(name, encoder)
    for batch in batches[:2]:
        stopped.update(batch)
    save_checkpoint(tmp_path / "checkpoint", stopped.state())
    resumed = built(name, encoder, seed=99)
    resumed.load_state(load_checkpoint(tmp_path / "checkpoint"))
    for batch in batches[2:]:
        resumed.update(batch)
    assert_same(resumed.state(), unbroken.state())


@every_learner
def test_a_state_is_a_copy_in_both_directions(name: str) -> None:
    learner = build(name)
    learner.update(random_batch())
    state = learner.state()
    kept = copy.deepcopy(state)
    learner.update(random_batch(1))
    assert_same(state, kept)
    other = build(name, seed=5)
    other.load_state(state)
    other.update(random_batch(2))
    assert_same(state, kept)


@every_learner
def test_a_policy_does_not_change_as_learning_goes_on(name: str) -> None:
    learner = build(name)
    policy = learner.policy()
    before = {array: values.copy() for array, values in policy.arrays().items()}
    learner.update(random_batch())
    for array, values in policy.arrays().items():
        np.testing.assert_array_equal(values, before[array])
    assert any((learner.policy().arrays()[array] != before[array]).any() for array in before)


@every_learner
def test_the_seed_decides_everything_and_the_global_random_state_nothing(name: str) -> None:
    def run(seed: int) -> dict[str, Tensor]:
        learner = build(name, seed=seed)
        learner.update(random_batch())
        return weights(learner)

    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = run(seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert_same(run(seed=3), first)
    assert any(not torch.equal(values, first[key]) for key, values in run(seed=4).items())


@every_learner
def test_a_row_of_twice_the_weight_counts_twice(name: str) -> None:
    batch = random_batch(lengths=(4, 4))
    twice = replace(batch, weight=torch.tensor([2.0, 1.0]))
    rows = [0, 0, 1]
    repeated = SessionBatch(batch.features[rows], batch.rewards[rows], batch.where[rows], torch.ones(3))
    # 2 rows against 3 positions to divide by
    one, other = build(name).update(twice), build(name).update(repeated)
    assert one["loss"] == pytest.approx(other["loss"] * 3 / 2, rel=1e-4, abs=1e-6)


@every_learner
def test_a_loss_that_is_not_finite_is_named_and_changes_nothing(name: str) -> None:
    learner = build(name)
    learner.update(random_batch())
    before = learner.state()
    batch = random_batch()
    broken = replace(batch, weight=torch.full_like(batch.weight, torch.nan))
    with pytest.raises(NonFiniteLossError, match="_loss' is not finite; lower the learning rates"):
        learner.update(broken)
    assert_same(learner.state(), before)


@every_learner
def test_the_gradient_is_clipped(name: str) -> None:
    batch = random_batch()
    plain, clipped = build(name, max_gradient_norm=1e9), build(name, max_gradient_norm=1e-12)
    start = weights(plain)
    plain.update(batch)
    clipped.update(batch)
    # Adam's step is the size of its rate however small the gradient is, unless it is below its ε of 1e-8.
    step, clipped_step = (
        max((weights(learner)[key] - start[key]).abs().max() for key in start) for learner in (plain, clipped)
    )
    assert step > 1e-5
    assert clipped_step < step / 10


@every_learner
def test_candidates_with_other_features_are_refused(name: str) -> None:
    candidates = Candidates(np.zeros((3, N_FEATURES + 1), np.float32), np.array([0, 3]), np.array(["q"]))
    with pytest.raises(InputError, match=f"{N_FEATURES} features.* found {N_FEATURES + 1}"):
        build(name).policy().rank(candidates, K)


@every_learner
def test_raw_features_are_scaled_as_in_training(name: str) -> None:
    candidates = some_candidates()
    raw = replace(candidates, features=100 * candidates.features + 50)
    normaliser = Normaliser("min-max", np.full(N_FEATURES, -50.0), np.full(N_FEATURES, 150.0))
    plain, scaling = build(name), build(name)
    scaling.build(N_FEATURES, K, 0, normaliser)
    np.testing.assert_array_equal(scaling.policy().rank(raw, K), plain.policy().rank(candidates, K))


@every_learner
def test_a_setting_out_of_range_is_refused(name: str) -> None:
    for norm in (-1.0, 0.0, float("inf")):
        expected = f"setting 'learner.max_gradient_norm': expected a finite number .*, found {norm}"
        with pytest.raises(InputError, match=expected):
            build(name, max_gradient_norm=norm)
    with pytest.raises(InputError, match=r"setting 'learner.hidden\[1\]': expected a whole number >= 1, found 0"):
        build(name, hidden=[4, 0])


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_unshown_documents_are_learned_from_if_asked_for(name: str) -> None:
    batch = random_batch(n_unshown=3)
    shown, both = build(name), build(name, candidates="all", max_unshown=3)
    assert (shown.max_unshown, both.max_unshown) == (0, 3)
    assert shown.update(batch) == build(name).update(replace(batch, unshown=None, unshown_where=None))
    assert both.update(batch)["loss"] != pytest.approx(build(name).update(batch)["loss"], rel=1e-6)


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_bfloat16_gives_about_the_same_losses(name: str) -> None:
    coarse, fine = (build(name, precision=precision).update(random_batch()) for precision in ("bfloat16", "float32"))
    assert coarse == pytest.approx(fine, rel=0.05, abs=0.02)
    assert coarse != fine


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_an_unknown_encoder_or_encoder_setting_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown encoder 'atention' \(did you mean 'attention'\?\)"):
        build(name, encoder="atention")
    with pytest.raises(InputError, match=r"unknown setting 'learner.encoder_settings.head' \(did you mean 'learner"):
        build(name, encoder_settings={"head": 4})


@pytest.mark.thorough
@every_case
def test_lists_of_one_position_are_learned_from(name: str, encoder: str) -> None:
    batch = random_batch(lengths=(1, 0, 1), k=1, n_unshown=3)
    for settings in ({"candidates": "shown"}, {"candidates": "all"}) if encoder else ({},):
        learner = built(name, encoder, k=1, **settings)
        for _ in range(2):
            assert all(np.isfinite(value) for value in learner.update(batch).values())
        assert all(values.isfinite().all() for values in weights(learner).values())
        assert learner.held_out_scores(batch).isfinite().all()
        assert (learner.policy().rank(some_candidates(), 1) >= 0).all()
