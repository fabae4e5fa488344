"""Commands and scripts for developers, and what makes the outside world fail. No tests.

A module that has a ``main`` runs as ``PYTHONPATH=tests python -m tools.NAME`` at the root, with ``--help``.
"""
