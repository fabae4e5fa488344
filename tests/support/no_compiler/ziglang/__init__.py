"""Stands before the real package on PYTHONPATH where a process is to have no compiler: no binary lies beside it."""
