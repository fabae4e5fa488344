"""Recipes of litert-quantizer (ai-edge-quantizer): which operators are quantized, and how."""
