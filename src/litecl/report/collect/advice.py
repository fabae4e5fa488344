"""Advice on how to avoid a refusal, for every kind of reason that the delegate gives."""

import re

_ADVICE: tuple[tuple[str, str], ...] = (
    (r"device failure", "find the failure with CLDelegate(strict=True), and run `litecl verify`"),
    (r"no device kernel for (\w+)", "use operators of docs/operators.md, or pass a kernel with custom_ops"),
    (r"tensors of its subgraphs are kept", "turn off experimental_preserve_all_tensors"),
    (
        r"shape that is known only at run time",
        "make the shape static: pad to a fixed size, or mask instead of selecting",
    ),
    (r"denied by|not in allow_ops", "change the delegate's allow_ops, deny_ops or deny_nodes"),
    (r"min_nodes_per_partition", "lower min_nodes_per_partition"),
    (r"largest partitions", "raise max_delegated_partitions"),
    (r"has no elements", "nothing to do: the node computes nothing"),
    (r"more than a kernel counts", "split the tensor: kernels count up to 2**31 elements"),
    (r"float64", "use a device with float64 (cl_khr_fp64)"),
    (r"is not a constant", "make it a constant of the model: a weight or a parameter that the converter can fold"),
    (r"has type|type \w+$", "cast to a type that devices support: FLOAT32, INT8, UINT8, INT16, INT32, INT64 or BOOL"),
    (r"sparse", "store the weights dense"),
    (r"weights are stored as", "store the weights in the default format"),
    (r"fused activation", "make the activation a separate operator"),
    (
        r"scale|zero point|quantized",
        "quantize as in docs/quantization.md: one scale per tensor, or per channel of weights",
    ),
    (r"windows of|sums of|rows of|filters so large", "use smaller sizes: the reason names the limit"),
    (r"broadcast", "give both operands the same batch"),
)
_OTHERWISE = "see docs/operators.md for supported operators"


def lift(reason: str) -> str:
    """Return advice on avoiding a refusal."""
    return next((text for pattern, text in _ADVICE if re.search(pattern, reason)), _OTHERWISE)
