"""Loops that compute a recurrent layer as one node; they emit operators of the converter's own, none of TFLite's."""
