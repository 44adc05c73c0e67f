"""Click models: how people look at a list, and what they click."""
