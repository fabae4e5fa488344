"""TensorFlow and Keras on one side, the converter's graph on the other. Only this package imports TensorFlow."""
