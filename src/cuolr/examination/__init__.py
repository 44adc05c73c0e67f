"""How likely users examine a position."""
