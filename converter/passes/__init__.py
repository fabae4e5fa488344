"""Passes over the converter's graph, one a file; ``pipeline`` gives their order."""
