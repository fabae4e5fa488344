"""Commands and scripts for developers; README.md lists them.

A module that has a ``main`` runs as ``PYTHONPATH=tests python -m tools.NAME`` at the root, with ``--help``.
"""
