"""Off-policy evaluation: what a click log says of a model, without labels."""
