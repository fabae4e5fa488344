"""Figures of models and devices: times, memory, operators, tuning. Nothing is printed, and no peer is needed."""
