"""Studies behind statements in the docs; each is run by hand."""
