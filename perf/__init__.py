"""Measurements of models, devices and peers: times, memory, operators, tuning. Nothing is printed here."""
