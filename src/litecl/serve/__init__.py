"""A server for one model: the Open Inference Protocol over HTTP, with batching, health and metrics."""
