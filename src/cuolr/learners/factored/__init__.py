"""`factored`: examination-corrected click rates, a cross-fitted ensemble."""
