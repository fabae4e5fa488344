"""Tells in which runtimes a model's nodes run, and with which numbers, from a table of what these runtimes did.

``kinds`` says which nodes are alike, ``specimens`` and ``observe`` run small models of one node on a runtime, in
processes (``worker``, ``making``); ``table`` keeps what was ``seen``, and ``places`` applies it to a model.
"""
