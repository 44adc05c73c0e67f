"""Offline reinforcement learning on the ranking MDP: the paper's method and its kin."""
