"""Converts PyTorch's exported programs by litert-torch; the only import of torch."""

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import litert_torch
import numpy as np
import torch
from torch.utils import _pytree as pytree

from litecl.converter.compact import compact
from litecl.converter.open_sizes import with_shapes
from litecl.converter.opened import opened
from litecl.converter.records import Shapes, Source
from litecl.interpreter.errors import ConversionError, brief
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.interpreter import Interpreter

_TOLERANCE = 1e-4  # of a result's largest magnitude
_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)

Sizes = Mapping[str, int]
"""The sizes of open dimensions, by torch's names."""


def load(path: Path) -> Any:
    """Return the program in a .pt2 file. Raises ConversionError if torch can't load it."""
    try:
        return torch.export.load(path)
    except Exception as error:
        raise ConversionError(f"{path}: torch does not load it: {brief(str(error))}") from error


@dataclass(frozen=True, eq=False)
class Program:
    """An exported program with open dimensions.

    inputs: the symbolic shape of every input tensor, by name, in order. ranges: the smallest and largest size of every
    open dimension, by name; None without a largest.
    """

    program: Any
    inputs: Mapping[str, Sequence[Any]]
    ranges: Mapping[str, tuple[int, int | None]]

    @classmethod
    def of(cls, program: Any, input_shapes: Shapes | None = None) -> "Program":
        """Return a program with the sizes in ``input_shapes`` fixed. Raises ConversionError if they don't fit."""
        if not isinstance(program, torch.export.ExportedProgram):
            expected = "expected a torch.export.ExportedProgram, as torch.export.export(model, example) returns it"
            raise ConversionError(f"{expected}, got {type(program).__name__}")
        taken = set(program.graph_signature.user_inputs)
        values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
        inputs = {
            name: tuple(value.shape)
            for name, value in values.items()
            if name in taken and isinstance(value, torch.Tensor)
        }
        constraints = {str(symbol): bounds for symbol, bounds in program.range_constraints.items()}
        names = {name for shape in inputs.values() for dim in shape for name in _symbols(dim)}
        ranges = {name: _range(constraints.get(name)) for name in sorted(names)}
        for name, size in _fixed(inputs, input_shapes or {}).items():
            ranges[name] = (size, size)
        return cls(program, inputs, ranges)

    def sizes(self) -> Sequence[Sizes]:
        """Return three sets of sizes in which every open dimension differs; one set if none is open.

        Prime numbers rarely coincide with other sizes.
        """
        sets: list[dict[str, int]] = [{}, {}, {}]
        primes = iter(_PRIMES)
        for name, (least, most) in self.ranges.items():
            wanted = [next(primes, 0) for _ in sets]
            if not all(least <= size <= (most or size) for size in wanted):
                wanted = [least + i if most is None else min(least + i, most) for i in range(len(sets))]
            for sizes, size in zip(sets, wanted, strict=True):
                sizes[name] = size
        return sets if sets[0] != sets[1] else sets[:1]

    def convert(self, sizes: Sizes) -> bytes:
        """Return the .tflite file for these sizes. Raises ConversionError if litert-torch fails."""
        args, kwargs = self._arguments(sizes, None)
        try:
            with _quietly():
                edge_model = litert_torch.convert(self.program.module(), args, kwargs or None)
                return bytes(edge_model.model_content())
        except Exception as error:
            at = f", at sizes {dict(sizes)}" if sizes else ""
            reason = brief(str(error) or type(error).__name__)
            raise ConversionError(f"litert-torch cannot convert this program{at}: {reason}") from error

    def run(self, inputs: Sequence[Array]) -> dict[str, Array]:
        """Return torch's results, by litert-torch's names."""
        given = [torch.from_numpy(np.ascontiguousarray(x)) for x in inputs]
        args, kwargs = self._arguments({}, given)
        with torch.no_grad():
            results = self.program.module()(*args, **kwargs)
        if isinstance(results, dict):
            return {name: value.numpy() for name, value in results.items()}
        return {f"output_{i}": value.numpy() for i, value in enumerate(pytree.tree_leaves(results))}

    def _arguments(self, sizes: Sizes, given: Sequence[Any] | None) -> tuple[Any, Any]:
        """Return arguments like the example's, with tensors of these sizes, or the given ones."""
        if self.program.example_inputs is None:
            raise ConversionError("the program has no example inputs: export it with torch.export.export")
        leaves, spec = pytree.tree_flatten(self.program.example_inputs)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if given is None:
            shapes = [[_size(dim, sizes) for dim in shape] for shape in self.inputs.values()]
            given = [torch.zeros(shape, dtype=x.dtype) for shape, x in zip(shapes, tensors, strict=True)]
        rest = iter(given)
        filled = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return args, kwargs


def model_of(program: Program) -> Model:
    """Return the model of a program, with its open dimensions.

    It merges conversions at two sets of sizes, and compares the result with torch at a third. Raises ConversionError if
    a dimension can't stay open.
    """
    first, *others = program.sizes()
    model = read(program.convert(first))
    if not others:
        return model
    model = with_shapes(compact(opened(model, read(program.convert(others[0])))), 1)
    _check(program, model, others[-1])
    return model


def _check(program: Program, model: Model, sizes: Sizes) -> None:
    """Raise ConversionError if a model's results differ from its program's at these sizes."""
    runner, rng = Interpreter(model).get_signature_runner(), np.random.default_rng(0)
    inputs = {
        name: _random(rng, [_size(dim, sizes) for dim in shape], detail["dtype"])
        for (name, detail), shape in zip(runner.get_input_details().items(), program.inputs.values(), strict=True)
    }
    expected, results = program.run(list(inputs.values())), runner(**inputs)
    for name, wanted in expected.items():
        got = results.get(name)
        limit = _TOLERANCE * max(1.0, float(np.abs(wanted).max(initial=0)))
        if got is None or got.shape != wanted.shape or not np.allclose(got, wanted, rtol=0, atol=limit, equal_nan=True):
            raise ConversionError(
                f"{name!r} is not what torch computes at sizes {dict(sizes)}: fix them by input_shapes"
            )


def _random(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> Array:
    return rng.standard_normal(shape).astype(dtype) if np.dtype(dtype).kind == "f" else np.zeros(shape, dtype)


def sources_of(program: Program, model: Model) -> dict[str, Source]:
    """Return the program as a function of arrays by input name, for each of the model's signatures."""
    return {signature.key: _source(program, tuple(signature.inputs)) for signature in model.signatures}


def _source(program: Program, names: Sequence[str]) -> Source:
    return lambda inputs: program.run([inputs[name] for name in names])


def _fixed(inputs: Mapping[str, Sequence[Any]], shapes: Shapes) -> dict[str, int]:
    """Return the sizes of open dimensions that follow from input shapes."""
    fixed: dict[str, int] = {}
    for name, shape in shapes.items():
        known = inputs.get(name)
        if known is None:
            raise ConversionError(f"input_shapes: there is no input {name!r}; there are {sorted(inputs)}")
        if len(known) != len(shape):
            raise ConversionError(f"input_shapes: {name!r} has rank {len(known)}, got {list(shape)}")
        for dim, size in zip(known, shape, strict=True):
            symbols = _symbols(dim)
            if size in (None, -1) or (not symbols and int(dim) == size):
                continue
            symbol = str(dim)
            if [symbol] != symbols or fixed.setdefault(symbol, int(size)) != size:
                raise ConversionError(f"input_shapes: expected {dim} in the shape of {name!r}, got {size}")
    return fixed


def _symbols(dim: Any) -> list[str]:
    return [] if isinstance(dim, int) else sorted(str(symbol) for symbol in dim.node.expr.free_symbols)


def _size(dim: Any, sizes: Sizes) -> int:
    if isinstance(dim, int):
        return dim
    expression = dim.node.expr
    return int(expression.subs({symbol: sizes[str(symbol)] for symbol in expression.free_symbols}))


def _range(bounds: Any) -> tuple[int, int | None]:
    """Return the ends of torch's range; None if it has no upper end."""
    if bounds is None:
        return 2, None
    upper = bounds.upper
    return max(int(bounds.lower), 1), int(upper) if upper.is_finite and int(upper) < 1 << 31 else None


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Suppress output and warnings of torch and litert-torch."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
