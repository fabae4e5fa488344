"""Passes over a region's graph: each is a function from graph to graph in a file of its own, and knows of no other."""
