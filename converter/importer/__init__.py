"""Models that a user hands over, as modules of TensorFlow's operators; the only package that imports TensorFlow."""
