"""Damaged and crafted files of every kind that cuolr reads; see docs/untrusted-files.md."""
