"""GPUs: what they have, and how lowerings share work out among groups, their local memory and their matrix units.

Nothing on a CPU's way knows of this room: records name lowerings for GPUs (``delegate/ops/gpu``), which use it.
"""
