"""Examination: the probability that users examine a position."""
