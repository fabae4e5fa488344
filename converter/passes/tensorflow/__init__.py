"""TensorFlow's arithmetic recognised, simplified and computed now; nothing that knows how TFLite writes it."""
