"""Measuring and looking: the ``litecl`` command, benchmarks, traces, and the demonstration."""
