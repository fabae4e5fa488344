"""Batch jobs: run a model on files or rows, part by part, on engines of one machine or many. Prints nothing."""
