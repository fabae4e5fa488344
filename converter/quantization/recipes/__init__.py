"""Recipes of litert-quantizer (ai-edge-quantizer): which operators to quantize, and how."""
