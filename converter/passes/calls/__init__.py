"""Turns functions called by name into functions that nodes own; ignores what they compute."""
