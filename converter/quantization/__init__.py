"""Models with integers or halves in place of floats. Works on a finished ``Model``; knows no TensorFlow."""
