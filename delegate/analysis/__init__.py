"""Facts that follow from a Model alone: loops, lists, cost. Nothing here knows a device, an operator's kernel or
a plan.
"""
