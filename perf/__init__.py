"""Figures of models and devices: times, memory, operators, tuning; and what a peer takes. Nothing is shown here."""
