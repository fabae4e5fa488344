"""Named recipes: those of ai_edge_quantizer/recipe.py, and more of their kind.

``dynamic_wi4b32_afp32``: 4-bit integer weights with a scale per block of 32 (``c`` or nothing: per channel), and
float32 activations that are quantized at run time; with ``_hr`` before ``_afp32``, rotated by Hadamard matrices.
``weight_only_...`` dequantizes the weights. ``static_wi8_ai16``: 16-bit activations.
"""

import re
from typing import Any

_FLOATS = re.compile(r"(dynamic|weight_only)_wi([842])(?:c|b(32|64|128|256))?(_hr)?_afp32")
_INTEGERS = re.compile(r"static_wi([84])_ai(8|16)")
_LEGACY = "dynamic_legacy_wi8_afp32"


def named(name: str) -> list[dict[str, Any]] | None:
    """Return a named recipe as plain data; None for unknown names."""
    if name == _LEGACY:
        return [entry(8, least=1024)]
    if match := _FLOATS.fullmatch(name):
        kind, bits, block, rotated = match.groups()
        if kind == "weight_only" and block:
            return None
        algorithm = "DECOMPOSED_HADAMARD_ROTATION" if rotated else "min_max_uniform_quantize"
        return [entry(int(bits), int(block or 0), algorithm, widened=kind == "weight_only")]
    if match := _INTEGERS.fullmatch(name):
        bits, activations = map(int, match.groups())
        every = entry(8, activations=activations)
        narrow = (entry(bits, operation=op, regex="", activations=activations) for op in ("FULLY_CONNECTED", "CONV_2D"))
        return [every] if bits == 8 else [every, *narrow]
    return None


def entry(
    bits: int,
    block: int = 0,
    algorithm: str = "min_max_uniform_quantize",
    *,
    regex: str = ".*",
    operation: str = "*",
    widened: bool = False,
    activations: int = 0,
    least: int = 0,
) -> dict[str, Any]:
    """Return an entry for weights of some bits, as plain data. widened: weight-only. activations: their bits, or 0."""
    weights = {"num_bits": bits, "symmetric": True, "granularity": f"BLOCKWISE_{block}" if block else "CHANNELWISE"}
    config: dict[str, Any] = {
        "weight_tensor_config": {**weights, "dtype": "INT"},
        "compute_precision": "FLOAT" if widened else "INTEGER",
        "explicit_dequantize": widened,
        "skip_checks": False,
        "min_weight_elements": least,
    }
    if activations:
        own = {"num_bits": activations, "symmetric": activations == 16, "granularity": "TENSORWISE", "dtype": "INT"}
        config["activation_tensor_config"] = own
    return {"regex": regex, "operation": operation, "algorithm_key": algorithm, "op_config": config}
