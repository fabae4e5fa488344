"""Random valid models, installed as ``litecl.random_graphs``: for tests, and for ``litecl verify --runtime``.

``sketch`` is a graph under construction in which every tensor has a value; the families (``elementwise``,
``weighted``, ``parts``, ``moves``, ``reductions``, ``recurrent``, ``control``, ``variables`` ...) each add nodes of
their operators to one; ``graphs`` draws whole models, the same for the same seed.
"""
