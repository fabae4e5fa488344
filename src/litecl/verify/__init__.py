"""`litecl verify`: checks a device against the reference, case by case, each batch in its own process.

``check`` defines a check and ``catalogue`` lists all of them. ``judge`` runs one check, ``worker`` many in a process
that may die, and ``supervise`` starts workers and finds the check that killed one. ``record`` holds the results, and
``pages`` shows them.
"""
