"""Rankers: fit weighted targets, give a policy."""
