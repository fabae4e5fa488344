"""``litecl verify --runtime``: any runtime for .tflite files against litecl's reference, check by check.

``runtimes`` loads one by its name, and ``program`` one that is a command; ``catalogue`` lists the checks, random graphs
included. ``judge`` runs a check and ``shrink`` makes one that fails small, both in the processes of ``worker``, which
may die; ``kit`` starts these. ``known`` has the faults of runtimes that are known, with their versions.
"""
