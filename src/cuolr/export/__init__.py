"""Models for search engines and other libraries, one file per target."""
