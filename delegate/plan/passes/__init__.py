"""Passes over a region's graph: each is a function from graph to graph, and lowers nothing."""
