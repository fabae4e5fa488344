"""Many inputs: a model on files or rows, part by part, by engines of one machine or of many. No showing."""
