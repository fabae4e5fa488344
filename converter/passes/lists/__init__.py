"""Lists of tensors as dense tensors; once this room is done, no value is a list."""
