"""Layers and state encoders, one file per encoder."""
