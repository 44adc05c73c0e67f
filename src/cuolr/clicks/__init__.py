"""Click models: which documents of a list users examine and click."""
