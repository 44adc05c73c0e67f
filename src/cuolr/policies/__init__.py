"""Ranking policies: what puts documents in order."""
