"""Rankers trained on labels: the logging policy and the reference rankers. Left of the wall."""
