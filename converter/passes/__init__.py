"""Passes over the converter's graph, one a file, in rooms by what they work on; ``pipeline`` gives their order.

Here lies what rooms share, patterns and sizes; rooms import nothing of each other.
"""
