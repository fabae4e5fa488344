"""Fuses loops that compute a recurrent layer into one node; emits internal operators, none of TFLite's."""
