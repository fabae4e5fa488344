"""What would lift a refusal: a line for every kind of reason that the delegate gives."""

import re

_ADVICE: tuple[tuple[str, str], ...] = (
    (r"device failure", "find out what failed with CLDelegate(strict=True), and `litecl verify` the device"),
    (r"no device kernel for (\w+)", "express it by operators of docs/operators.md, or give a kernel with custom_ops"),
    (r"tensors of its subgraphs are kept", "do without experimental_preserve_all_tensors"),
    (
        r"shape that is known only at run time",
        "make the shape static: pad to a fixed size, or mask instead of selecting",
    ),
    (r"denied by|not in allow_ops", "an option of the delegate says so: allow_ops, deny_ops, deny_nodes"),
    (r"min_nodes_per_partition", "lower min_nodes_per_partition"),
    (r"largest partitions", "raise max_delegated_partitions"),
    (r"has no elements", "nothing to gain: there is nothing to compute"),
    (r"more than a kernel counts", "split the tensor: kernels count up to 2**31 elements"),
    (r"float64", "a device that computes in float64 (cl_khr_fp64) takes it"),
    (r"is not a constant", "make it a constant of the model: a weight or a parameter that the converter can fold"),
    (r"has type|type \w+$", "cast to a type that devices take: FLOAT32, INT8, UINT8, INT16, INT32, INT64 or BOOL"),
    (r"sparse", "store the weights dense"),
    (r"weights are stored as", "store the weights in the default format"),
    (r"fused activation", "make the activation an operator of its own"),
    (r"scale|zero point|quantized", "quantize as docs/quantization.md says: a scale a tensor, or a channel of weights"),
    (r"windows of|sums of|rows of|filters so large", "smaller sizes fit: the reason names the limit"),
    (r"broadcast", "give both operands the same batch"),
)
_OTHERWISE = "see docs/operators.md for what the device's kernels take"


def lift(reason: str) -> str:
    """Return what would change that the CPU runs a node for a reason."""
    return next((text for pattern, text in _ADVICE if re.search(pattern, reason)), _OTHERWISE)
