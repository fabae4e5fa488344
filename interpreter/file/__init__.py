"""The .tflite file: reading, verifying, writing. Nothing here runs an operator."""
