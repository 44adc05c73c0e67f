"""Measurements behind what the docs say; each is run by hand."""
