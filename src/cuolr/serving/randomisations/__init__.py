"""Randomisations of lists, one file each."""
