"""`factored`: a ranking by examination-corrected click rates, from a cross-fitted ensemble."""
