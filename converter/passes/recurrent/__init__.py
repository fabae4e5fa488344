"""Loops that compute a recurrent layer as one node; emits internal operators, none of TFLite's."""
