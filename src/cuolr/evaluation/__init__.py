"""Evaluation of policies on labelled queries."""
