"""GPUs: their properties, and how lowerings use groups, local memory and matrix units.

On a CPU's way only operators' records know of this room: they name lowerings for GPUs (``delegate/ops/gpu``), and the
type of their target.
"""
