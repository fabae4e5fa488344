"""Runs public programs, unchanged, on litecl and on LiteRT, and compares what they compute."""
