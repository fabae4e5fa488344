"""Exports a whole model as one file that needs nothing: a library for C programs, or a module for the web."""
