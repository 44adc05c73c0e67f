"""Learning to rank from click logs, whatever the click model."""

__version__ = "0.1.0"
