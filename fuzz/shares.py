"""How many cases of each kind a run has: more of those that are read faster."""

from collections.abc import Mapping


def shares(total: int, seconds: Mapping[str, float], least: int) -> dict[str, int]:
    """The number of cases of each kind.

    >>> shares(100, {"fast": 0.001, "slow": 0.004}, least=10)
    {'fast': 74, 'slow': 26}

    Args:
        total: Of all kinds; more if `least` asks for more.
        seconds: What a case of each kind takes.
        least: The least number of cases of a kind.
    """
    left = max(0, total - least * len(seconds))
    speed = {kind: 1 / max(taken, 1e-4) for kind, taken in seconds.items()}
    return {kind: least + round(left * speed[kind] / sum(speed.values())) for kind in seconds}
