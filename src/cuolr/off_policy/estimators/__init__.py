"""Off-policy estimators, one file each."""
