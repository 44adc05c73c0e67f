"""Benchmarks; each prints ratios measured in one run, which are robust on a noisy machine."""
