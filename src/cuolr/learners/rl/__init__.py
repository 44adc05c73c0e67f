"""Offline reinforcement learning on the ranking MDP: the paper's method and related algorithms."""
