"""Variants of a document, which differ in features of the impression, such as its price, as one document."""

import re

import numpy as np

from cuolr.types import Candidates, Ints, Strings

# Of the hash that names a variant: two of a thousand variants of a document have the same with a probability of 2e-9.
HASH_BYTES = 6
VARIANT_ID = re.compile(rf"#[0-9a-f]{{{2 * HASH_BYTES}}}$")


def logged_ids(candidates: Candidates) -> Strings:
    """[n_documents] the ids of documents in the log that was imported, the same for all variants of a document."""
    names = candidates.document_names
    if candidates.recipe is None or not candidates.recipe.impression:
        return names
    return np.array([VARIANT_ID.sub("", name) for name in names.tolist()], np.str_)


def first_variants(candidates: Candidates) -> Ints:
    """[n_documents] the row of the first variant of the same document and query."""
    rows = np.arange(candidates.n_documents)
    if candidates.recipe is None or not candidates.recipe.impression:
        return rows
    _, number = np.unique(logged_ids(candidates), return_inverse=True)
    pair = candidates.query_of_document * (number.max(initial=0) + 1) + number
    _, first, of_row = np.unique(pair, return_index=True, return_inverse=True)
    return rows[first][of_row]
