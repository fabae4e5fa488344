"""Options without a record: a custom operator's bytes, and fields of an operator that litecl does not have."""

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, UnsupportedOp
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs


@dataclass(frozen=True)
class CustomOptions:
    """The options of a custom operator: bytes that only the operator can read, often a FlexBuffers map."""

    data: bytes = b""

    def fields(self) -> dict[str, Any]:
        """Return the entries of a FlexBuffers map. Raises ModelError if the bytes hold something else."""
        return flexbuffer_map(self.data)


@dataclass(frozen=True)
class RawOptions:
    """Options of a builtin that litecl has no record of: the schema table and its fields as read."""

    table: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


_FLEX = (
    "the file was made with SELECT_TF_OPS and runs TensorFlow's operator {} by the Flex delegate, which has all of "
    "TensorFlow in it; convert the source model again with litecl (litecl convert, or litecl.converter.Converter), "
    "whose files need no Flex"
)


COMPILED_FOR = {"edgetpu-custom-op": "an Edge TPU (edgetpu_compiler)", "ethos-u": "an Ethos-U (Vela)"}
"""Accelerators by the custom operator that stands for all that is compiled for them."""


def compiled_for(name: str) -> str:
    """Explain the custom operator of an accelerator's compiler."""
    return f"the file is compiled for {COMPILED_FOR[name]}, which alone runs it: take the file from before that"


@cache
def unknown_op(name: str, custom: bool) -> Op:
    """Return a record for an operator that litecl does not have: it can be read, shown and written, but not run."""

    def refuse() -> UnsupportedOp:
        if custom and name.startswith("Flex"):
            return UnsupportedOp(_FLEX.format(name.removeprefix("Flex")), operator=name)
        if name in COMPILED_FOR:
            return UnsupportedOp(compiled_for(name), operator=name)
        hint = "; pass it by Interpreter(custom_ops=...)" if custom else ""
        return UnsupportedOp(f"no kernel for this {'custom ' if custom else ''}operator{hint}", operator=name)

    def infer(options: object, inputs: Specs) -> list[TensorSpec]:
        raise refuse()

    def run(options: object, inputs: Inputs) -> list[Array]:
        raise refuse()

    options = CustomOptions if custom else RawOptions
    return Op(name, options, infer, run, versions=range(1, 2**31), pure=False, custom=custom)


def flexbuffer_map(data: bytes, name: str = "custom options") -> dict[str, Any]:
    """Return the entries of a FlexBuffers map. what: names the bytes in the error.

    Raises ModelError if they hold something else.
    """
    from flatbuffers import flexbuffers  # few models need it

    try:
        value = flexbuffers.Loads(data)
    except Exception as error:  # the flatbuffers reader may raise anything on malformed bytes
        raise ModelError(f"{name} of {len(data)} bytes are not a FlexBuffers map") from error
    if not isinstance(value, dict):
        raise ModelError(f"{name} hold a {type(value).__name__}, expected a FlexBuffers map")
    return value
