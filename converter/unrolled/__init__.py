"""Recurrent layers that another converter has written step by step, rolled up into one operator or one loop each.

A step is recognised by its arithmetic (``cells``), steps that hand their states on form a chain (``chains``), a chain
whose steps all compute the same becomes a ``layer``, and a layer's nodes take the place of the chain (``roll_up``).
"""
