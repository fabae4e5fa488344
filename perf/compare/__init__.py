"""Developers' tools, not in the wheel: comparisons with other runtimes, and searches for what goes wrong."""
