"""A region as a graph, which passes rewrite and the lowering turns into steps with memory assigned. Pure data."""
