"""Text generation: bundles, tokenizers, samplers and sessions around a model's prefill and decode signatures.

The interpreter and its delegate run the layers; nothing here computes one.
"""
