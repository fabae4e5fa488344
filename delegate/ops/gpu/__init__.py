"""Lowerings for GPUs whose groups share local memory.

One that suits some shapes returns None for others; a record says by what those are lowered (``or_else``).
"""
