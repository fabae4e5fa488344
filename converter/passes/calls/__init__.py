"""Turns functions called by name, in calls, branches and loops, into functions that nodes own; ignores what they
compute.
"""
