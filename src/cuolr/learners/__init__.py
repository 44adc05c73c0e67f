"""Learners: from a click log to a ranking policy."""
