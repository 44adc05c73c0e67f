"""Data sets and click logs: read, generated, normalised, cached."""
