"""Devices of OpenCL: found, chosen, open, with the programs that are built for them."""
