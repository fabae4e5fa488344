"""The command ``litecl``, benchmarks and traces, the demonstration, and developers' comparisons."""
