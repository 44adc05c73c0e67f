"""`factored`: learns to rank by examination-corrected click rates, with a cross-fitted ensemble."""
