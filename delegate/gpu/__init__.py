"""GPUs: their properties, and how lowerings use groups and local memory.

On a CPU's way only operators' records know of this room: they name lowerings for GPUs (``delegate/ops/gpu``), and the
type of their target.
"""
