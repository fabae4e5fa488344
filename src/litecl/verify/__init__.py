"""`litecl verify`: a device against the reference, case by case, each batch in its own process.

``check`` says what is checked, ``catalogue`` lists all of it; ``judge`` runs one check, ``worker`` many of them in a
process that may die, and ``supervise`` starts workers and finds the check that killed one. ``record`` is what comes of
it, ``pages`` shows it.
"""
