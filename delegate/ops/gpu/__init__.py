"""Lowerings for GPUs whose groups share local memory: each returns None where the operator's own lowering suits."""
