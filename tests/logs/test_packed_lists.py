"""Lists and clicks as words of 64 bits."""

import numpy as np
import pytest

from cuolr.logs.packed_lists import PackedLists, packed_clicks, unpacked_clicks


@pytest.mark.parametrize(
    ("queries", "documents", "k"), [(1, 1, 1), (3, 7, 10), (5_000, 300, 12), (2**31, 2**15 - 1, 9)]
)
def test_lists_are_the_same_after_packing_and_sorted_by_query_then_document(
    queries: int, documents: int, k: int
) -> None:
    random = np.random.default_rng(1)
    query = random.integers(max(queries - 3, 0), queries, 200)
    ranking = random.integers(-1, documents, (200, k)).astype(np.int16)
    ranking[:100, k // 2 :] = documents - 1
    lists = PackedLists(queries.bit_length(), documents.bit_length())
    words = lists.pack(query, ranking)
    again = lists.unpack(np.stack(words, axis=1), k, np.int16)
    assert again[0].tolist() == query.tolist()
    assert again[1].tolist() == ranking.tolist()
    assert again[1].dtype == np.int16
    in_order = np.lexsort(words[::-1])
    rows = np.column_stack([query, ranking])[in_order].tolist()
    assert rows == sorted(rows)


def test_positions_without_a_document_at_the_end_need_no_words() -> None:
    lists = PackedLists(2, 30)
    short = lists.pack(np.array([1]), np.array([[4]]))
    long = lists.pack(np.array([1]), np.array([[4, -1, -1, -1]]))
    assert [int(word[0]) for word in long] == [int(short[0][0]), 0]
    assert lists.unpack(np.stack(short, axis=1), 4, np.int64)[1].tolist() == [[4, -1, -1, -1]]


@pytest.mark.parametrize("k", [1, 8, 10, 64, 65, 130])
def test_clicks_are_the_same_after_packing(k: int) -> None:
    clicks = (np.random.default_rng(1).random((50, k)) < 0.3).astype(np.uint8)
    words = packed_clicks(clicks)
    assert len(words) == -(-k // 64)
    assert [int(word[0]) for word in words] == [
        sum(int(clicks[0, position]) << (position - start) for position in range(start, min(start + 64, k)))
        for start in range(0, k, 64)
    ]
    assert unpacked_clicks(words.T, k).tolist() == (clicks > 0).tolist()
    assert unpacked_clicks(words.T, k + 70).sum() == clicks.sum()
