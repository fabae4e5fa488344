"""OpenCL devices: finding, choosing and opening them, and their programs."""
