"""litecl's own operators: custom ones whose kernels are functions of arrays."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType

Result = tuple[TensorType, Shape | None]
"""The type of a result, and its shape, None if only the kernel determines it."""

Results = Callable[[Any, list[TensorSpec]], Iterable[Result]]


def operator(
    name: str, options: type, run: Callable[..., Sequence[Array] | Array], results: Results, *, pure: bool = True
) -> Op:
    """Return an operator, whose name begins with ``litecl.``.

    run: maps the options and an array for each operand to the results. results: maps the options and the operands'
    specs to what is known of the results, and raises ShapeError if the operands do not fit.
    """

    def infer(options: Any, inputs: Specs) -> list[TensorSpec]:
        given = [spec for spec in inputs if spec is not None]
        if len(given) != len(inputs):
            raise ShapeError("expected all operands, got absent ones")
        try:
            return [TensorSpec(type_, shape) for type_, shape in results(options, given)]
        except (ValueError, IndexError) as error:
            if isinstance(error, ShapeError):
                raise
            raise ShapeError(f"expected other operands, got {[spec.type.name for spec in given]}: {error}") from error

    def compute(options: Any, inputs: Inputs) -> list[Array]:
        result = run(options, *inputs)
        return [result] if isinstance(result, np.ndarray) else list(result)

    return Op(name, options=options, infer=infer, run=compute, custom=True, pure=pure)


def texts(values: Sequence[bytes], shape: Shape | None = None) -> Array:
    """Return texts as an array, by default a vector."""
    array = np.empty(len(values), object)
    array[:] = values
    return array if shape is None else array.reshape(shape)


def sparse(rows: Sequence[Sequence[Any]]) -> tuple[Array, list[Any], Array]:
    """Return ragged rows as a sparse matrix: each element's row and column [n, 2], the elements, and the shape [2]."""
    indices = [(row, column) for row, elements in enumerate(rows) for column in range(len(elements))]
    shape = np.array([len(rows), max(map(len, rows), default=0)], np.int64)
    return np.array(indices, np.int64).reshape(-1, 2), [element for row in rows for element in row], shape


def decoded(data: bytes) -> str:
    """Return bytes as UTF-8; ``encoded`` gives invalid ones back."""
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return a text in UTF-8, with the invalid bytes that ``decoded`` read."""
    return text.encode("utf-8", "surrogateescape")
