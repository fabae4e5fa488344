"""Turns TensorFlow 1's variables, arrays, loops and branches into TensorFlow 2's, which it leaves alone.

Only in this room may a function's nodes form cycles.
"""
