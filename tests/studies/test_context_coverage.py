import pytest

from studies.context_coverage import Devices


@pytest.mark.slow
def test_intervals_hold_the_true_gain_of_users_of_two_devices() -> None:
    devices = Devices.of()
    pairs = [devices.estimates(10_000, seed) for seed in range(1, 21)]
    for found in zip(*pairs, strict=True):
        assert sum(each.covered for each in found) >= 18


def test_a_ranker_that_changes_nothing_gains_nothing() -> None:
    devices = Devices.of(queries=30)
    same = Devices(devices.data, devices.logger, devices.logger)  # type: ignore[arg-type]
    known, unknown = same.estimates(500, seed=1)
    assert [known.true, known.gain, unknown.gain] == pytest.approx([0, 0, 0], abs=1e-9)
