"""Counterfactual learners: rankers trained on clicks that are corrected for bias."""
