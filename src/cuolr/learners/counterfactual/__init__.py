"""Counterfactual learners: a debiasing over a ranker."""
