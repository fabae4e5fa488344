"""Simplifies variables, loops and branches, and refuses effects that no file can have; knows no arithmetic."""
