"""Benchmarks: each prints ratios measured in one run, so that a noisy machine can run them."""
