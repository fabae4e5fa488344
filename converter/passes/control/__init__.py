"""Simplifies variables, loops and branches, and refuses effects that a file can't express; knows no arithmetic."""
