"""Turns lists of tensors into dense tensors; after this room no value is a list."""
