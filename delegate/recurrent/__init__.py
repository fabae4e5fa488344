"""Recurrent cells, and the loops that are one. No operator lives here."""
