import pytest

from studies.context_coverage import Devices


@pytest.mark.slow
def test_intervals_hold_the_true_gain_if_the_device_is_known() -> None:
    devices = Devices.of()
    pairs = [devices.estimates(10_000, seed) for seed in range(1, 21)]
    covered, covered_without = (sum(each.covered for each in found) for found in zip(*pairs, strict=True))
    assert covered >= 18
    assert covered_without <= 10


def test_a_ranker_that_changes_nothing_gains_nothing() -> None:
    devices = Devices.of(queries=30)
    same = Devices(devices.data, devices.logger, devices.logger)  # type: ignore[arg-type]
    known, unknown = same.estimates(500, seed=1)
    assert known.true == known.gain == unknown.gain == 0
