"""Finds, chooses and opens OpenCL devices, and builds their programs."""
