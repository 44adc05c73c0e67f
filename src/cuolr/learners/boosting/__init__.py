"""LambdaMART trained on clicks."""
