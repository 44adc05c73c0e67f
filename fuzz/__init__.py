"""Damaged and crafted files of every kind that cuolr reads; see docs/robustness.md."""
