"""Exported models as programs: built by a C compiler, with inputs and outputs through pipes."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from litecl.delegate.export.c_program import c_files
from litecl.delegate.export.draft import draft
from litecl.delegate.export.image import Image, Port
from litecl.delegate.export.machines import export_machine
from litecl.delegate.native import compiler
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model, Signature
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.compare import GREATER
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.spectral import RFFT2D
from litecl.interpreter.ops.unary import NEG, RELU, TANH
from litecl.perf.models.build_control import FLOAT, INT, below, if_node, next_, plus, subgraph, while_model
from support import compare, quantize_models, variable_models
from support.build import Graph, model, randn

CC = shutil.which("cc")
HAS_ZIG = getattr(compiler.found(), "source", "") == compiler.OF_ZIGLANG
needs_zig = pytest.mark.skipif(not HAS_ZIG, reason="not the package ziglang")
needs_cc = pytest.mark.skipif(CC is None or not HAS_ZIG, reason="no C compiler (cc), or not the package ziglang")
STRICT = ("-O1", "-Wall", "-Wextra", "-Werror", "-pedantic")
NONE = NoOptions()
RESET = "reset"
Step = tuple[str, Mapping[str, Array]] | str
"""A run of a signature, by its key ("" if it is the only one), on inputs by name; or ``RESET``."""

_RUNS = """
#include <stdio.h>
#include "{name}.h"

{memory}
int run_{name}(void);
int run_{name}(void) {{
    for (int command; (command = getchar()) != EOF;) {{
        switch (command) {{
            case 'z': {name}_reset(); break;
{cases}        }}
    }}
    return 0;
}}
"""

_CASE = """\
            case 'a' + {i}: {{
                const struct {prefix}_inputs inputs = {{{inputs}}};
                const struct {prefix}_outputs outputs = {{{outputs}}};
                {reads}
                putchar({prefix}_invoke(&inputs, &outputs));
                {writes}
                break;
            }}
"""


def harness(images: Mapping[str, Image], name: str) -> str:
    """Return C with ``run_NAME``, which reads inputs, runs a model, and writes outputs."""
    memory, cases = "", ""
    for i, (key, image) in enumerate(images.items()):
        prefix = f"{name}_{key}" if key else name
        inputs, outputs = (
            {f"{prefix}_{way}_{n}": port.size_bytes for n, port in enumerate(ports)}
            for way, ports in (("in", image.inputs), ("out", image.outputs))
        )
        memory += "".join(f"static _Alignas(8) char {array}[{n}];\n" for array, n in {**inputs, **outputs}.items())
        cases += _CASE.format(
            i=i,
            prefix=prefix,
            inputs=", ".join(f"(void *){array}" for array in inputs) or "0",
            outputs=", ".join(f"(void *){array}" for array in outputs) or "0",
            reads="\n                ".join(
                f"if (sizeof {array} && !fread({array}, sizeof {array}, 1, stdin)) return 2;" for array in inputs
            ),
            writes=" ".join(f"fwrite({array}, sizeof {array}, 1, stdout);" for array in outputs),
        )
    return _RUNS.format(name=name, memory=memory, cases=cases)


def main_of(images: Mapping[str, Image], name: str) -> str:
    """Return the same as a program."""
    return f"{harness(images, name)}\nint main(void) {{ return run_{name}(); }}\n"


class CProgram:
    """A model exported and built as a program. emulator: what runs it, if it is for another machine."""

    def __init__(
        self,
        model: Any,
        folder: Path,
        options: Sequence[str] = STRICT,
        name: str = "model",
        machine: str = "x86_64-linux",
        cc: Sequence[str] = (str(CC),),
        emulator: Sequence[str] = (),
        **given: Any,
    ) -> None:
        self.model = model
        self.drawn = draft(model, export_machine(machine), **given)
        self.images = self.drawn.images
        self.files, self.sizes = c_files(self.drawn, "test.tflite", name)
        for file, content in self.files.items():
            (folder / file).write_bytes(content)
        (folder / "harness.c").write_text(main_of(self.images, name))
        self.path = folder / "harness"
        self._command = *emulator, str(self.path)
        build(folder, [folder / "harness.c", folder / f"{name}.a"], self.path, options, cc)

    def run(self, steps: Sequence[Step]) -> list[tuple[int, list[Array]]]:
        """Return the status and the outputs of every run."""
        done = subprocess.run(self._command, input=b"".join(map(self._sent, steps)), capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        results, at = [], 0
        for key, _ in [step for step in steps if not isinstance(step, str)]:
            status, outputs = done.stdout[at], arrays(self.images[key].outputs, done.stdout, at + 1)
            results.append((status, outputs))
            at += 1 + sum(output.nbytes for output in outputs)
        assert at == len(done.stdout)
        return results

    def _sent(self, step: Step) -> bytes:
        if isinstance(step, str):
            return b"z"
        key, values = step
        command = bytes([ord("a") + [*self.images].index(key)])
        return command + b"".join(content_of(values[port.name], port) for port in self.images[key].inputs)


def arrays(ports: Sequence[Port], content: bytes, at: int) -> list[Array]:
    """Return outputs that lie one after another in bytes."""
    found: list[Array] = []
    for port in ports:
        elements = np.frombuffer(content, port.spec.dtype, port.spec.size, at)
        found.append(elements.reshape(port.spec.static_shape))
        at += port.size_bytes
    return found


class Exported(Protocol):
    """An exported model that runs. run: returns the status and the outputs of every run."""

    model: Any
    images: Mapping[str, Image]

    def run(self, steps: Sequence[Step]) -> list[tuple[int, list[Array]]]: ...


def build(
    folder: Path,
    sources: Sequence[Path],
    program: Path,
    options: Sequence[str] = STRICT,
    cc: Sequence[str] = (str(CC),),
) -> None:
    """Build a program with a C compiler, the system's by default; any warning is an error."""
    command = [*cc, *options, f"-I{folder}", *map(str, sources), "-lm", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def content_of(value: Array, port: Port) -> bytes:
    """Return an input's bytes."""
    assert value.shape == port.spec.static_shape
    return np.ascontiguousarray(value, port.spec.dtype).tobytes()


def random_steps(program: Exported, runs: int = 3, seed: int = 3) -> list[Step]:
    """Return runs of all signatures in turn on random inputs, then a reset and the first of them again."""
    rng = np.random.default_rng(seed)
    steps: list[Step] = [
        (key, {port.name: random(rng, port) for port in image.inputs})
        for _ in range(runs)
        for key, image in program.images.items()
    ]
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
    steps, interpreter = steps or random_steps(program), Interpreter(program.model)
    for image in program.images.values():
        for port in image.inputs:
            subgraph, shape = image.signature.subgraph, port.spec.static_shape
            interpreter.resize_tensor_input(port.tensor, shape, subgraph_index=subgraph)
    interpreter.allocate_tensors()
    got = iter(program.run(steps))
    for step in steps:
        if isinstance(step, str):
            interpreter.reset_all_variables(resources=True)
            continue
        image, subgraph = program.images[step[0]], program.images[step[0]].signature.subgraph
        for port in image.inputs:
            interpreter.set_tensor(port.tensor, step[1][port.name], subgraph_index=subgraph)
        interpreter._invoke(subgraph)
        status, outputs = next(got)
        assert status == 0
        for port, output in zip(image.outputs, outputs, strict=True):
            expected = interpreter.get_tensor(port.tensor, subgraph)
            assert output.shape == expected.shape
            if expected.dtype.kind in "fc":
                compare.assert_close(output, expected, 1e-5)
            else:
                np.testing.assert_array_equal(output, expected)


def images() -> Model:
    """Return a model of convolutions, and a dense layer over all their results."""
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


def shared() -> Model:
    """Two signatures of the same weights and variable, one of which keeps a state of its own, and one without any."""
    rng = np.random.default_rng(12)
    weights, first, other, plain = randn(rng, 6, 6), Graph("first"), Graph("other"), Graph("plain")
    x = first.input((2, 6))
    first.node(CALL_ONCE, (), (), CallOnceOptions(3))
    total = variable_models.add(first, variable_models.read(first, "a"), x)
    y = first.op(FULLY_CONNECTED, [total, first.const(weights), None], FullyConnectedOptions())
    variable_models.assign(first, "a", variable_models.tanh(first, y))
    z = other.input((2, 6))
    other.node(CALL_ONCE, (), (), CallOnceOptions(3))
    dense = other.op(FULLY_CONNECTED, [z, other.const(weights), None], FullyConnectedOptions())
    before, own = variable_models.read(other, "a"), variable_models.read(other, "b")
    result = variable_models.add(other, variable_models.add(other, dense, before), own)
    variable_models.assign(other, "a", result)
    variable_models.assign(other, "b", variable_models.tanh(other, dense))
    large = plain.input((40, 40))
    start = Graph("start")
    for name in "ab":
        variable_models.assign(start, name, start.const(randn(rng, 2, 6)))
    graphs = first.build(y), other.build(result, before), plain.build(plain.op(NEG, [large], NONE)), start.build()
    signatures = (
        Signature("first", {"x": x}, {"y": y}),
        Signature("other", {"z": z}, {"result": result, "before": before}, 1),
        Signature("plain", {"x": large}, {"y": graphs[2].outputs[0]}, 2),
    )
    return model(*graphs, signatures=signatures)


def spectrum() -> Model:
    """Return a model that computes complex numbers from floats."""
    g = Graph()
    x = g.input((4, 16))
    return model(g.build(g.op(RFFT2D, [x, g.const(np.int32([4, 16]))], NONE)))
