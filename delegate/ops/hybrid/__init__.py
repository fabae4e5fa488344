"""Operators on floats with constant integer weights."""
