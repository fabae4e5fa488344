"""A region as a graph, which passes rewrite and the lowering turns into steps with assigned memory. Pure data."""
