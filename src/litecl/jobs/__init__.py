"""Batch jobs: a model on files or rows, part by part, by engines of one machine or many. Nothing is printed here."""
