"""Imports a user's models as modules of TensorFlow's operators; the only package that imports TensorFlow."""
