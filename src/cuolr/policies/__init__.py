"""Ranking policies, which order the documents of a query."""
