"""Facts about a Model alone: loops, lists, cost. Nothing here depends on devices, kernels or plans."""
