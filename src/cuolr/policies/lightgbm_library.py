"""LightGBM, imported on first use."""

from typing import Any

from cuolr.errors import InputError


def load_lightgbm() -> Any:
    """Import LightGBM: it needs the system's OpenMP library, which not every machine has."""
    try:
        import lightgbm
    except OSError as error:
        raise InputError(
            f"LightGBM cannot be loaded ({error}); on Debian or Ubuntu, run: apt-get install libgomp1"
        ) from None
    return lightgbm
