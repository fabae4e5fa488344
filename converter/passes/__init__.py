"""Passes over the converter's graph, one per file, grouped into rooms by subject; ``pipeline`` orders them.

Code that rooms share, such as patterns and sizes, is here; rooms don't import each other.
"""
