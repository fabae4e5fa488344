"""Lowerings for GPUs whose groups share local memory.

A lowering returns None for shapes that it doesn't suit; the operator's record gives the fallback (``or_else``).
"""
