"""Exported models as programs: built by a C compiler and run on inputs, which go in and come out by pipes."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from litecl.delegate.export.c_program import c_files
from litecl.delegate.export.draft import Draft, draft
from litecl.delegate.export.image import Image, Port
from litecl.delegate.export.machines import export_machine
from litecl.delegate.native import compiler
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.compare import GREATER
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.unary import NEG, RELU, TANH
from litecl.perf.models.build_control import FLOAT, INT, below, if_node, next_, plus, subgraph, while_model
from support import compare, quantize_models
from support.build import Graph, model

CC = shutil.which("cc")
HAS_ZIG = getattr(compiler.found(), "source", "") == compiler.OF_ZIGLANG
needs_zig = pytest.mark.skipif(not HAS_ZIG, reason="not the package ziglang")
needs_cc = pytest.mark.skipif(CC is None or not HAS_ZIG, reason="no C compiler (cc), or not the package ziglang")
STRICT = ("-O1", "-Wall", "-Wextra", "-Werror", "-pedantic")
NONE = NoOptions()
RESET = "reset"
Step = Mapping[str, Array] | str
"""The inputs of a run by name, or ``RESET``."""

_RUNS = """
#include <stdio.h>
#include "{name}.h"

{memory}
int run_{name}(void);
int run_{name}(void) {{
    const struct {name}_inputs inputs = {{{inputs}}};
    const struct {name}_outputs outputs = {{{outputs}}};
    for (int command; (command = getchar()) != EOF;) {{
        if (command == 'z') {{
            {name}_reset();
            continue;
        }}
        {reads}
        const int status = {name}_invoke(&inputs, &outputs);
        putchar(status);
        {writes}
    }}
    return 0;
}}
"""


def harness(image: Image, name: str) -> str:
    """Return C with ``run_NAME``, which runs a model on what it reads, and writes what comes of it."""
    sizes = {f"{name}_{way}_{i}": port.size_bytes for way, ports in (("in", image.inputs), ("out", image.outputs))
             for i, port in enumerate(ports)}  # fmt: skip
    inputs, outputs = ([array for array in sizes if f"_{way}_" in array] for way in ("in", "out"))
    return _RUNS.format(
        name=name,
        memory="\n".join(f"static _Alignas(8) char {array}[{size}];" for array, size in sizes.items()),
        inputs=", ".join(f"(void *){array}" for array in inputs) or "0",
        outputs=", ".join(f"(void *){array}" for array in outputs) or "0",
        reads="\n        ".join(f"if (!fread({array}, sizeof {array}, 1, stdin)) return 2;" for array in inputs),
        writes="\n        ".join(f"fwrite({array}, sizeof {array}, 1, stdout);" for array in outputs),
    )


def main_of(image: Image, name: str) -> str:
    """Return the same as a program."""
    return f"{harness(image, name)}\nint main(void) {{ return run_{name}(); }}\n"


class CProgram:
    """A model exported for this machine and built as a program."""

    def __init__(
        self, model: Any, folder: Path, options: Sequence[str] = STRICT, name: str = "model", **given: Any
    ) -> None:
        self.model = model
        self.drawn = draft(model, export_machine("x86_64-linux"), **given)
        self.files, self.sizes = c_files(self.drawn, "test.tflite", name)
        for file, content in self.files.items():
            (folder / file).write_bytes(content)
        (folder / "harness.c").write_text(main_of(self.drawn.image, name))
        self.path = folder / "harness"
        build(folder, [folder / "harness.c", folder / f"{name}.a"], self.path, options)

    def run(self, steps: Sequence[Step]) -> list[tuple[int, list[Array]]]:
        """Return the status and the outputs of every run."""
        image = self.drawn.image
        sent = b"".join(
            b"z" if isinstance(step, str) else b"r" + b"".join(_bytes(step[port.name], port) for port in image.inputs)
            for step in steps
        )
        done = subprocess.run([self.path], input=sent, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        results, at = [], 0
        for _ in [step for step in steps if not isinstance(step, str)]:
            status, at, outputs = done.stdout[at], at + 1, []
            for port in image.outputs:
                outputs.append(
                    np.frombuffer(done.stdout, port.spec.dtype, port.spec.size, at).reshape(port.spec.static_shape)
                )
                at += port.size_bytes
            results.append((status, outputs))
        assert at == len(done.stdout)
        return results


class Exported(Protocol):
    """An exported model that runs. run: returns the status and the outputs of every run."""

    model: Any
    drawn: Draft

    def run(self, steps: Sequence[Step]) -> list[tuple[int, list[Array]]]: ...


def build(folder: Path, sources: Sequence[Path], program: Path, options: Sequence[str] = STRICT) -> None:
    """Have the system's C compiler build a program; no warning may come."""
    command = [str(CC), *options, f"-I{folder}", *map(str, sources), "-lm", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _bytes(value: Array, port: Port) -> bytes:
    assert value.shape == port.spec.static_shape
    return np.ascontiguousarray(value, port.spec.dtype).tobytes()


def random_steps(program: Exported, runs: int = 3, seed: int = 3) -> list[Step]:
    """Return runs on random inputs, then a reset and the first of them again."""
    rng = np.random.default_rng(seed)
    steps: list[Step] = [{port.name: random(rng, port) for port in program.drawn.image.inputs} for _ in range(runs)]
    return [*steps, RESET, steps[0]]


def random(rng: np.random.Generator, port: Port) -> Array:
    """Return a random value of an input."""
    shape, dtype = port.spec.static_shape, port.spec.dtype
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.itemsize <= 2:
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    return rng.integers(0, 3, shape).astype(dtype)


def check(program: Exported, steps: Sequence[Step] = ()) -> None:
    """Compare all outputs of all runs with the interpreter's: integers to the bit, floats within 1e-5."""
    steps = steps or random_steps(program)
    image, interpreter = program.drawn.image, Interpreter(program.model)
    subgraph = program.drawn.signature.subgraph
    for port in image.inputs:
        interpreter.resize_tensor_input(port.tensor, port.spec.static_shape, subgraph_index=subgraph)
    interpreter.allocate_tensors()
    got = iter(program.run(steps))
    for step in steps:
        if isinstance(step, str):
            interpreter.reset_all_variables(resources=True)
            continue
        for port in image.inputs:
            interpreter.set_tensor(port.tensor, step[port.name], subgraph_index=subgraph)
        interpreter._invoke(subgraph)
        status, outputs = next(got)
        assert status == 0
        for port, output in zip(image.outputs, outputs, strict=True):
            expected = interpreter.get_tensor(port.tensor, subgraph)
            assert output.shape == expected.shape
            if expected.dtype.kind == "f":
                compare.assert_close(output, expected, 1e-5)
            else:
                np.testing.assert_array_equal(output, expected)


def images() -> Model:
    """Convolutions, and a dense layer over all that comes of them."""
    g = quantize_models.Net()
    x = g.op(RELU, [g.conv(g.input((1, 9, 7, 3)), 8)], NONE)
    x = g.conv(g.conv(x, 12), 5)
    flat = g.op(RESHAPE, [x, g.const(np.int32([1, -1]))], ReshapeOptions((1, -1)))
    return model(g.build(g.dense(flat, 6), x))


def branching() -> Model:
    """A loop whose body takes one of two branches."""
    state = [((), INT), ((5,), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        total = g.op(SUM, [x[1], g.const(np.int32([0]))], ReducerOptions())
        positive = g.op(GREATER, [total, g.const(np.float32(0))], NONE)
        return [next_(g, x[0]), *if_node(g, [positive, x[1]], 3, 4, x[1])]

    then = subgraph("then", state[1:], lambda g, x: g.op(NEG, [g.op(TANH, [x[0]], NONE)], NONE))
    otherwise = subgraph("else", state[1:], lambda g, x: plus(g, x[0], g.const(np.float32(0.3))))
    return while_model(state, below(7), body, then, otherwise)
