"""Random valid graphs, run by the interpreter and on a device: the parts of ``tools.fuzz_graphs``.

``sketch`` is a graph under construction in which every tensor has a value; the families (``elementwise``, ``weighted``,
``windows``, ``moves``, ``joins``, ``reductions``, ``recurrent``, ``control``) each add nodes of their operators to one;
``graphs`` draws whole models; ``modes`` runs one on a device; ``oracle`` bounds how far floats may be from the
interpreter's; ``minimise`` makes what differs small; ``work`` runs it all in processes.
"""
