"""Recurrent cells, and loops that are equivalent to one. No operator lives here."""
