"""GPUs: their target, passes and lowerings, and how those use groups and local memory.

No code for CPUs imports this room. ``own`` is the table of what a GPU does in its own way.
"""
