"""Rolls up recurrent layers that another converter unrolled, into one operator or loop each.

``cells`` recognises a step by its arithmetic, ``chains`` links steps that pass on their states, ``layer`` checks that
all steps of a chain compute the same, and ``roll_up`` replaces the chain by the layer's nodes.
"""
