"""What a user hands over, as a module of TensorFlow's operators; the only package that imports TensorFlow."""
