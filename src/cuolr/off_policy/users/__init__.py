"""Users fitted to a log, as off-policy evaluation needs them: their clicks on any list, and how sure these are."""
