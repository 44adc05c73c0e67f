"""Names of features that every engine accepts."""

import re
from collections.abc import Sequence


def engine_names(names: Sequence[str]) -> list[str]:
    """Names of ASCII letters, digits and underscores that start with a letter or an underscore; all are different.

    Search engines use names of features in expressions, URLs and JSON without quotes.

    >>> engine_names(["price", "brand=Acme & Co", "brand=Acme_&_Co", "2nd"])
    ['price', 'brand_Acme_Co', 'brand_Acme_Co_2', '_2nd']
    """
    taken: set[str] = set()
    safe = []
    for name in names:
        base = re.sub(r"[^A-Za-z0-9_]+", "_", name)
        base = re.sub(r"_{2,}", "_", base) if base != name else base
        base = base if re.match(r"[A-Za-z_]", base) else f"_{base}"
        number, unique = 1, base
        while unique in taken:
            number += 1
            unique = f"{base}_{number}"
        taken.add(unique)
        safe.append(unique)
    return safe
