"""Calls, branches and loops by name as functions that nodes own; what those functions compute is left alone."""
