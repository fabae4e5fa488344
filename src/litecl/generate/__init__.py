"""Text from language models: bundles, tokenizers, samplers and sessions around a file's prefill and decode signatures.

Kernels and memory are the delegate's and ``compiled_model``'s; nothing here computes a layer.
"""
