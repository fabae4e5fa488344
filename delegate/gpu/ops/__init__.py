"""Lowerings for GPUs whose groups share local memory; most return None for shapes that they don't suit."""
