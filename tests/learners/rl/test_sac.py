from dataclasses import replace
from math import inf, log, nan
from typing import Any

import pytest
import torch

from cuolr.errors import InputError
from cuolr.learners.rl.mdp import Episodes
from cuolr.learners.rl.sac import SAC, share_of_uniform_entropy
from tests.learners.lists import build, random_batch


def built(**settings: Any) -> SAC:
    learner = build("sac", **settings)
    assert isinstance(learner, SAC)
    return learner


@pytest.mark.parametrize(("target", "steps"), [(0.8, 400), pytest.param(0.3, 1_000, marks=pytest.mark.thorough)])
def test_the_automatic_entropy_weight_brings_the_entropy_to_its_target(target: float, steps: int) -> None:
    learner = built(
        entropy_weight="automatic",
        target_entropy=target,
        entropy_learning_rate=0.05,
        actor_learning_rate=1e-2,
        critic_learning_rate=1e-2,
    )
    batch = random_batch(lengths=(4, 3, 4, 2, 4, 4))
    entropies = [learner.update(batch)["entropy"] for _ in range(steps)]
    assert abs(entropies[0] - target) > 0.1
    assert sum(entropies[-50:]) / 50 == pytest.approx(target, abs=0.03)


@pytest.mark.thorough
def test_a_fixed_entropy_weight_stays_and_a_small_one_lets_the_entropy_fall() -> None:
    learner = built(actor_learning_rate=1e-2, critic_learning_rate=1e-2)
    plotted = [learner.update(random_batch()) for _ in range(200)]
    assert plotted[0]["entropy"] > 0.9
    assert plotted[-1]["entropy"] < 0.3
    assert [step["entropy_weight"] for step in plotted] == pytest.approx([1e-10] * 200, rel=1e-5, abs=0)


def test_entropy_is_measured_against_a_uniform_choice_of_what_is_left() -> None:
    episodes = Episodes.of(random_batch(lengths=(3, 2), k=3), with_unshown=False)
    count = episodes.actions.sum(dim=1, keepdim=True).clamp(min=1)
    uniform = episodes.actions / count
    share = share_of_uniform_entropy(uniform, -count.log().expand_as(uniform), episodes)
    assert share.item() == pytest.approx(1.0)

    certain = torch.zeros_like(uniform)
    assert share_of_uniform_entropy(certain, certain, episodes).item() == 0.0

    # half and half at the first step of the list of three, certain elsewhere
    policy, log_policy = torch.zeros(3, 3, 2), torch.zeros(3, 3, 2)
    policy[0, :2, 0], log_policy[0, :2, 0] = 0.5, log(0.5)
    first, second = episodes.weight.tolist()
    expected = first * log(2) / (first * (log(3) + log(2)) + second * log(2))
    assert share_of_uniform_entropy(policy, log_policy, episodes).item() == pytest.approx(expected)


def test_entropy_counts_each_list_as_often_as_the_losses_do() -> None:
    batch = replace(random_batch(lengths=(3, 3), k=3), weight=torch.tensor([3.0, 1.0]))
    episodes = Episodes.of(batch, with_unshown=False)
    # half and half at the first step of the first list, which is three times as frequent; certain elsewhere
    policy, log_policy = torch.zeros(3, 3, 2), torch.zeros(3, 3, 2)
    policy[0, :2, 0], log_policy[0, :2, 0] = 0.5, log(0.5)
    expected = 3 * log(2) / ((3 + 1) * (log(3) + log(2)))
    assert share_of_uniform_entropy(policy, log_policy, episodes).item() == pytest.approx(expected)


def test_lists_of_one_document_have_no_entropy_to_gain() -> None:
    learner = built(k=1, entropy_weight="automatic", target_entropy=1.0)
    plotted = [learner.update(random_batch(lengths=(1, 1), k=1)) for _ in range(3)]
    assert [step["entropy_weight"] for step in plotted] == pytest.approx([0.1] * 3)


@pytest.mark.parametrize(("learns_from", "moves"), [("critics and actor", True), ("critics", False)])
def test_the_actor_trains_the_encoder_unless_told_otherwise(learns_from: str, moves: bool) -> None:
    learner = built(encoder_learns_from=learns_from, entropy_weight=1.0)
    losses = learner.losses(Episodes.of(random_batch(), with_unshown=False))
    torch.autograd.backward(losses.minimised["actor_loss"])
    gradients = [parameter.grad for parameter in learner.encoder.parameters()]
    assert any(gradient is not None and gradient.abs().max() > 0 for gradient in gradients) is moves
    for critic in learner.critics:
        assert all(parameter.grad is None for parameter in critic.parameters())


def test_the_critics_train_the_encoder_and_the_target_networks_train_nothing() -> None:
    learner = built()
    losses = learner.losses(Episodes.of(random_batch(), with_unshown=False))
    torch.autograd.backward(losses.minimised["critic_loss"])
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in learner.encoder.parameters())
    assert all(p.grad is None for p in learner.actor.parameters())
    assert all(p.grad is None for target in learner.targets for p in target.parameters())


def test_the_targets_follow_the_critics_slowly() -> None:
    learner = built(target_rate=0.1, critic_learning_rate=0.01)
    before = [parameter.clone() for parameter in learner.networks["targets"].parameters()]
    learner.update(random_batch())
    for target, start, critic in zip(
        learner.networks["targets"].parameters(), before, learner.networks["critics"].parameters(), strict=True
    ):
        torch.testing.assert_close(target, start + 0.1 * (critic - start))
        assert not torch.equal(target, critic)


def test_each_network_has_a_learning_rate_of_its_own() -> None:
    rates = {"encoder": 1e-4, "actor": 1e-3, "critics": 1e-2}
    learner = built(encoder_learning_rate=1e-4, actor_learning_rate=1e-3, critic_learning_rate=1e-2)
    before = learner.state()["networks"]
    learner.update(random_batch())
    after = learner.state()["networks"]
    for network, rate in rates.items():
        steps = [(after[name] - before[name]).abs().max() for name in before if name.startswith(f"{network}.")]
        assert max(steps).item() == pytest.approx(rate, rel=0.01)  # Adam's first step is as long as its rate


def test_the_held_out_score_is_the_likelihood_of_clicks_under_the_reward_implied() -> None:
    learner = built(discount=0.5)
    batch = random_batch(lengths=(1, 1))
    # With one document there is no next state: the implied probability is the mean of the critics' Q(s, a).
    with torch.no_grad():
        state = learner.encoder(batch.features)[:, 0]
        q = torch.stack([critic(state, batch.features[:, 0]) for critic in learner.critics]).mean(dim=0)
        for critic in learner.critics:
            critic.output.bias.add_(0.5 - q[0])  # in the first list it becomes 0.5
    clicked = replace(batch, rewards=torch.tensor([[1.0, 0, 0, 0], [1.0, 0, 0, 0]]))
    second = 0.5 + float(q[1] - q[0])
    assert learner.held_out_scores(clicked).tolist() == pytest.approx([log(0.5), log(second)], rel=1e-4)


def test_an_impossible_click_costs_no_more_than_the_clip() -> None:
    learner = built(discount=0.0)
    batch = random_batch(lengths=(2,))
    with torch.no_grad():
        for critic in learner.critics:
            critic.output.bias.add_(100)
    none, both = torch.zeros(1, 4), torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    assert learner.held_out_scores(replace(batch, rewards=none)).item() == pytest.approx(log(0.001), rel=1e-3)
    assert learner.held_out_scores(replace(batch, rewards=both)).item() == pytest.approx(log(0.999), rel=1e-3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"discount": 1.5}, "setting 'learner.discount': expected 0 to 1, found 1.5"),
        ({"entropy_weight": -1.0}, "setting 'learner.entropy_weight': expected a finite number >= 0, found -1.0"),
        ({"entropy_weight": inf}, "setting 'learner.entropy_weight': expected a finite number >= 0, found inf"),
        ({"discount": nan}, "setting 'learner.discount': expected 0 to 1, found nan"),
        ({"entropy_weight": "auto"}, "setting 'learner.entropy_weight': expected .*'automatic', found 'auto'"),
        ({"hidden": [16, 0]}, r"setting 'learner.hidden\[1\]': expected a whole number >= 1, found 0"),
        ({"candidates": "some"}, "setting 'learner.candidates': expected one of 'shown', 'all', found 'some'"),
        ({"encoder_settings": {"heads": 1.5}}, "setting 'learner.encoder_settings.heads': expected a whole number"),
        ({"encoder": "atention"}, "unknown encoder 'atention'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(**settings)
