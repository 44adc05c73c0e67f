"""Data sets: reading, generating, normalising and caching."""
