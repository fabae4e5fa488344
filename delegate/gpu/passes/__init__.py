"""Passes over a region's graph that only GPUs run."""
