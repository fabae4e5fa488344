"""Perfetto's own reader of traces, and what it makes of litecl's."""
