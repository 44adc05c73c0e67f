"""Off-policy evaluation of a model from a click log, without labels."""
