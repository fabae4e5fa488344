"""Models that are made by code: how to write one, and well-known networks with random weights."""
