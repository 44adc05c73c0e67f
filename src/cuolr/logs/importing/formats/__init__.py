"""Formats of click logs, one file each."""
