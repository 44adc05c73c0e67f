"""LambdaMART on clicks."""
