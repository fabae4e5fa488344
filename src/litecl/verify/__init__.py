"""`litecl verify`: what a device computes, case by case, against the reference, each batch in a process of its own.

``check`` says what is checked, ``catalogue`` lists all of it; ``judge`` runs one check, ``worker`` many of them in a
process that may die, and ``supervise`` starts workers and finds the check that killed one. ``record`` is what comes of
it, ``pages`` shows it.
"""
