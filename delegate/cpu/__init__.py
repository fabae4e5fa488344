"""Processors: how lowerings share work out among cores and registers, and what only pays there."""
