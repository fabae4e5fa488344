"""Recognises, simplifies and folds TensorFlow's arithmetic; knows nothing of how TFLite writes it."""
