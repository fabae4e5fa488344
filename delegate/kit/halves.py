"""Launches that convert tensors between FLOAT16 and float32."""

from litecl.delegate.cl_op import Launch, Operand, Target
from litecl.delegate.kit.schedule import elements


def widen(source: Operand, into: Operand, target: Target) -> Launch:
    """Return the launch that converts FLOAT16 elements to float32."""
    return _converted("widen", source, into, target)


def narrow(source: Operand, into: Operand, target: Target) -> Launch:
    """Return the launch that rounds float32 elements to FLOAT16, ties to even; too large ones become infinite."""
    return _converted("narrow", source, into, target)


def _converted(entry: str, source: Operand, into: Operand, target: Target) -> Launch:
    share = elements("halves", source.spec.size, target)
    return share.launch(entry, (source, into, *share.args), {})
