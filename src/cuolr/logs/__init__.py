"""Click logs: what was shown and what was clicked."""
