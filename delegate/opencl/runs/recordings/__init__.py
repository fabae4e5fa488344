"""Launches that a GPU's driver records once and queues at once: command buffers, and Qualcomm's recordings."""
