"""From a click log to a trained policy."""
