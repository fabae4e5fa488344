"""Measures models, devices and peers: times, memory, operators, tuning. Prints nothing."""
