"""``litecl verify --runtime``: checks any runtime for .tflite files against litecl's reference.

``runtimes`` loads one by name, and ``program`` wraps a command; ``catalogue`` lists the checks, including random
graphs. ``judge`` runs a check and ``shrink`` minimizes a failing one, both in ``worker`` processes, which may die;
``kit`` starts these. ``known`` describes runtimes' known faults, with versions.
"""
