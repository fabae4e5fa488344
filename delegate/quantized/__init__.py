"""Integers that represent real numbers: checks, packed weights, the stage after the sums. No operator lives here."""
