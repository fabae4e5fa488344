"""GPUs: their properties, and how lowerings use groups, local memory and matrix units.

Nothing on a CPU's way knows of this room: records name lowerings for GPUs (``delegate/ops/gpu``), which use it.
"""
