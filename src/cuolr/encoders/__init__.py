"""State encoders: what the user has seen so far, as a vector."""
