"""Rankers: each fits weighted list-wise targets step by step, and gives a ranking policy."""
