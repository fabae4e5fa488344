"""TensorFlow Lite's arithmetic on integers, and other functions of whole arrays. No operator lives here."""
