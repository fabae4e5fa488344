"""Random valid graphs, run by the interpreter and on a device: the parts of ``tools.fuzz_graphs``.

``litecl.random_graphs`` draws them; ``modes`` runs one on a device; ``oracle`` bounds how far floats may be from the
interpreter's; ``minimise`` makes what differs small; ``work`` runs it all in processes.
"""
