"""How well a policy ranks labelled queries."""
