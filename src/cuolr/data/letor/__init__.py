"""LETOR files: labelled queries."""
