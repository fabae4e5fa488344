"""Measuring and looking: the command ``litecl``, benchmarks and traces, the demonstration, developers' comparisons."""
