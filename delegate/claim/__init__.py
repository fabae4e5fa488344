"""Chooses the nodes that run on the device, with reasons for the others. Pure functions of data."""
