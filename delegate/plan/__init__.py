"""A region as a graph, which passes rewrite and a lowering turns into steps with their memory placed. Pure data."""
