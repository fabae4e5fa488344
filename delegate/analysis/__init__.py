"""Facts that a Model alone tells: loops, lists, cost. Nothing here knows a device, an operator's kernel or a plan."""
