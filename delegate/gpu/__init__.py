"""GPUs: their properties, and how lowerings use groups and local memory.

Code for CPUs doesn't know this room, except for operators' records, which name the lowerings for GPUs
(``delegate/ops/gpu``) and the type of their target.
"""
