"""Builds models in code, including well-known networks with random weights."""
