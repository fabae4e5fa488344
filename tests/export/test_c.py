"""Models exported for C programs: all outputs are the interpreter's."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from litecl.cli import main
from litecl.delegate.export.c_program import c_files
from litecl.delegate.export.draft import draft
from litecl.delegate.export.machines import export_machine
from litecl.delegate.native import compiler
from litecl.interpreter.errors import DelegateError, ModelError
from litecl.interpreter.graph import Array, Model, Signature, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unary import NEG
from litecl.interpreter.ops.unique import UNIQUE, UniqueOptions
from litecl.interpreter.schema import TensorType
from litecl.perf.models.build_control import FLOAT, subgraph
from support import nets, quantize_models, small_models, variable_models
from support.build import Graph, model, randn
from support.exported import (
    CC,
    RESET,
    STRICT,
    CProgram,
    Step,
    branching,
    build,
    check,
    harness,
    images,
    needs_cc,
    needs_zig,
    random,
    random_steps,
    shared,
    spectrum,
)
from support.pages import ROOT

RNG = np.random.default_rng(4)
RUSTC = shutil.which("rustc")
NONE = NoOptions()


@needs_cc
@pytest.mark.parametrize("made", [small_models.chain, images, spectrum])
def test_models_of_floats(made: Callable[[], Model], tmp_path: Path) -> None:
    check(CProgram(made(), tmp_path))


@needs_cc
@pytest.mark.parametrize("type_", ["int8", "int16"])
def test_models_of_integers_are_equal_to_the_bit(type_: str, tmp_path: Path) -> None:
    made, _ = quantize_models.quantized(images(), activations=type_, input_type=type_, output_type=type_)
    program = CProgram(made, tmp_path)
    check(program)
    (x,), header = program.images[""].inputs, program.files["model.h"].decode()
    assert x.quantization is not None
    scale, zero_point = x.quantization
    (told,) = [line.split()[2] for line in header.splitlines() if "MODEL_INPUT_" in line and "_SCALE" in line]
    assert np.float32(told.rstrip("f")) == np.float32(scale)
    assert f"_ZERO_POINT ({zero_point})\n" in header


@needs_cc
def test_integer_weights_meet_floats(tmp_path: Path) -> None:
    made, _ = quantize_models.quantized(images(), activations=None, data=None)
    check(CProgram(made, tmp_path, dynamic_range="reference"))


@needs_cc
def test_states_are_kept_between_runs_until_a_reset(tmp_path: Path) -> None:
    check(CProgram(small_models.lstm(), tmp_path))


@needs_cc
@pytest.mark.parametrize("name", variable_models.MODELS)
def test_variables_start_as_the_model_first_assigns_them(name: str, tmp_path: Path) -> None:
    check(CProgram(variable_models.MODELS[name](), tmp_path))


@needs_cc
def test_loops_and_branches(tmp_path: Path) -> None:
    check(CProgram(branching(), tmp_path))


@needs_cc
def test_a_loop_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    """After which the next run is right again."""
    program = CProgram(branching(), tmp_path, max_loop_iterations=5)
    (i, x), y = (port.name for port in program.images[""].inputs), RNG.standard_normal(5).astype(np.float32)
    steps: list[Step] = [("", {i: np.int32(start), x: y}) for start in (-1, 2, 7, -1, 3)]
    results = program.run(steps)
    assert [status for status, _ in results] == [1, 0, 0, 1, 0]
    check(program, [step for step, (status, _) in zip(steps, results, strict=True) if not status])


@needs_cc
def test_states_survive_a_run_that_fails(tmp_path: Path) -> None:
    made = variable_models.MODELS["looped"]()
    assert CProgram(made, tmp_path, max_loop_iterations=3).run(random_steps(CProgram(made, tmp_path)))[0][0] == 0
    limited = CProgram(made, tmp_path, max_loop_iterations=2)
    assert [status for status, _ in limited.run(random_steps(limited))] == [1, 1, 1, 1]


@needs_cc
def test_outputs_that_nothing_computes(tmp_path: Path) -> None:
    """An input that is an output, one that nothing reads, a constant, and no node at all."""
    g = Graph()
    x, y, _ = g.input((3,)), g.input((2, 2), TensorType.INT8), g.input((2,))
    constant = g.const(np.float32([1, 2]))
    check(CProgram(model(g.build(g.op(NEG, [x], NONE), y, x, constant)), tmp_path))
    check(CProgram(model(g.build(y, constant)), tmp_path))
    none = Graph()
    check(CProgram(model(none.build(none.op(NEG, [none.const(np.float32([1, 2]))], NONE))), tmp_path))


@needs_cc
def test_constants_that_begin_like_text_in_utf_16(tmp_path: Path) -> None:
    g = Graph()
    check(CProgram(model(g.build(g.input((2,)), g.const(np.frombuffer(b"\xfe\xff\x80\x3f", np.float32)))), tmp_path))


@needs_cc
def test_two_models_in_one_program(tmp_path: Path) -> None:
    """Of the same kernels, with other weights."""
    one, two = (CProgram(small_models.chain(), tmp_path, name=name) for name in ("one", "two"))
    runs = "".join(harness(program.images, name) for program, name in ((one, "one"), (two, "two")))
    for program, name in ((one, "one"), (two, "two")):
        (tmp_path / "both.c").write_text(
            f"{runs}int main(int n, char **of) {{ return n > 9 ? *of[0] : run_{name}(); }}"
        )
        build(tmp_path, [tmp_path / "both.c", tmp_path / "one.a", tmp_path / "two.a"], program.path)
        check(program)


@needs_cc
@pytest.mark.parametrize("type_", [TensorType.INT8, TensorType.UINT8, TensorType.INT16])
def test_global_symbols_begin_with_the_name(type_: TensorType, tmp_path: Path) -> None:
    """But those of the compiler's library, which are the same everywhere: models may be of different litecls."""
    weights = TensorType.UINT8 if type_ == TensorType.UINT8 else TensorType.INT8
    g = nets.Net(nets.Domain(type_, weights, nets.by(0.05, 128 if type_ == TensorType.UINT8 else 0)))
    made = model(g.build(nets.conv(24, size=3)(g, nets.depthwise(1)(g, nets.conv(16)(g, g.x((1, 9, 9, 3)))))))
    program = CProgram(made, tmp_path, name="mine")
    check(program)
    listed = subprocess.run(["nm", str(tmp_path / "mine.a")], capture_output=True, text=True, check=True).stdout
    found = {line.split()[-1] for line in listed.splitlines() if len(line.split()) == 3 and line.split()[1] in "TDBRWV"}
    assert [symbol for symbol in found if not symbol.startswith(("mine_", "__"))] == []
    assert "mine_invoke" in found


@needs_cc
def test_memory_is_used_within_its_bounds(tmp_path: Path) -> None:
    """By AddressSanitizer, which knows the caller's arrays."""
    options = "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    check(CProgram(images(), tmp_path, options))
    check(CProgram(small_models.lstm(), tmp_path, options))
    check(CProgram(shared(), tmp_path, options))
    integers, _ = quantize_models.quantized(images(), activations="int8", input_type="int8", output_type="int8")
    check(CProgram(integers, tmp_path, options))


@needs_cc
def test_the_example_runs(tmp_path: Path) -> None:
    made = CProgram(images(), tmp_path)
    build(tmp_path, [tmp_path / "main.c", tmp_path / "model.a"], tmp_path / "main")
    assert b"malloc" not in made.files["model.a"]
    assert made.sizes.needs == ("memcpy", "memset")
    assert made.sizes.flash_bytes > len(made.drawn.constants) > 0
    assert made.sizes.ram_bytes >= made.drawn.arena_bytes


@needs_cc
def test_the_header_has_no_warnings(tmp_path: Path) -> None:
    """By the system's compiler and by clang, as C and as C++, of two models at once."""
    for name, made in (("one", images()), ("two", shared())):
        files, _ = c_files(draft(made, export_machine("x86_64-linux")), "test.tflite", name)
        (tmp_path / f"{name}.h").write_bytes(files[f"{name}.h"])
    (tmp_path / "both.c").write_text('#include "one.h"\n#include "two.h"\n')
    found = compiler.found()
    assert found is not None
    for cc in ((str(CC),), (found.command[0], "cc")):
        for language, standard in (("c", "c99"), ("c", "c11"), ("c++", "c++17")):
            chosen = f"-x{language}", f"-std={standard}", "-c", "both.c", "-o", "both.o"
            subprocess.run([*cc, *STRICT, *chosen], cwd=tmp_path, check=True)


@needs_cc
@pytest.mark.parametrize("build", [images, small_models.lstm, branching])
def test_what_it_needs_of_others(build: Callable[[], Model], tmp_path: Path) -> None:
    """No heap, no files, no system: copies of memory and, if told, functions of mathematics."""
    files, sizes = c_files(draft(build(), export_machine("x86_64-linux")), "test.tflite", "model")
    (tmp_path / "model.a").write_bytes(files["model.a"])
    listed = subprocess.run(["nm", str(tmp_path / "model.a")], capture_output=True, text=True, check=True).stdout
    symbols = [line.split() for line in listed.splitlines() if line]
    wanted = {words[-1] for words in symbols if words[0] == "U"}
    defined = {words[-1] for words in symbols if len(words) == 3}
    assert wanted - defined == set(sizes.needs) <= {"memcpy", "memset"}


@pytest.mark.nightly  # zig compiles its C library first
@needs_zig
@pytest.mark.parametrize("build", [images, small_models.lstm, branching])
def test_zig_builds_the_program(build: Callable[[], Model], tmp_path: Path) -> None:
    found = compiler.found()
    assert found is not None
    check(CProgram(build(), tmp_path, STRICT, cc=(found.command[0], "cc")))


@needs_cc
@pytest.mark.skipif(RUSTC is None, reason="no rustc on the path")
def test_rust_calls_it(tmp_path: Path) -> None:
    """By the guide's program."""
    assert main(["sample", str(tmp_path)]) == 0
    sample, folder = tmp_path / "model.tflite", tmp_path / "digits"
    folder.mkdir()
    CProgram(sample, folder)
    (source,) = re.findall(r"^```rust\n(.*?)^```", (ROOT / "docs/guides/export.md").read_text(), re.M | re.S)
    (tmp_path / "main.rs").write_text(source)
    subprocess.run([str(RUSTC), "main.rs", "-C", "link-arg=digits/model.a"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    status, probabilities = printed.split(" ", 1)
    expected = small_models.run(small_models.reference(sample), np.full((1, 8, 8, 3), 0.5, np.float32))
    assert status == "0"
    np.testing.assert_allclose(np.float32(json.loads(probabilities)), expected[0], rtol=1e-5, atol=1e-7)


@needs_cc
def test_open_shapes_are_fixed(tmp_path: Path) -> None:
    program = CProgram(small_models.chain(), tmp_path, shapes={"main_in0": (3, 5)})
    assert program.images[""].inputs[0].spec.shape == (3, 5)
    check(program)


@needs_zig
def test_shapes_of_unknown_inputs() -> None:
    with pytest.raises(ModelError, match=r"no input 'x'; the model has \['main_in0'\]"):
        draft(small_models.chain(), export_machine("x86_64-linux"), shapes={"x": (3, 5)})


@needs_zig
def test_a_model_that_needs_python_is_refused() -> None:
    g = Graph()
    x = g.input((4,))
    specs = [TensorSpec(TensorType.FLOAT32, None), TensorSpec(TensorType.INT32, (4,))]
    values, _ = g.node(UNIQUE, [x], specs, UniqueOptions())
    made = model(g.build(g.op(NEG, [x], NONE), values))
    with pytest.raises(DelegateError, match=r"cannot be exported.* 1 node: subgraph 0, node 0, UNIQUE: "):
        draft(made, export_machine("x86_64-linux"))


@needs_zig
def test_a_variable_that_nothing_assigns_first_is_refused() -> None:
    g = Graph()
    made = model(g.build(*variable_models.accumulated(g)))
    with pytest.raises(DelegateError, match="nothing assigns variable '/a' a first value, FLOAT32"):
        draft(made, export_machine("x86_64-linux"))


@needs_cc
def test_one_of_several_signatures(tmp_path: Path) -> None:
    g = Graph()
    x = g.input((2, 6))
    y = g.op(FULLY_CONNECTED, [x, g.const(randn(RNG, 4, 6)), None], FullyConnectedOptions())
    other = subgraph("other", [((3,), FLOAT)], lambda g, x: g.op(NEG, [x[0]], NONE))
    signatures = Signature("score", {"in": x}, {"scores": y}), Signature("negate", {"x": 0}, {"y": 1}, 1)
    made = model(g.build(y), other, signatures=signatures)
    with pytest.raises(ModelError, match=r"there is no 'x'; the model has \['score', 'negate'\]"):
        draft(made, export_machine("x86_64-linux"), signature="x")
    program = CProgram(made, tmp_path, signature="score")
    assert "const float *in; /* in: FLOAT32 [2, 6]" in program.files["model.h"].decode()
    check(program)
    check(CProgram(made, tmp_path, signature="negate"))
    both = CProgram(made, tmp_path)
    assert "const struct model_negate_inputs *inputs" in both.files["model.h"].decode()
    check(both)


@needs_cc
def test_signatures_share_weights_and_states(tmp_path: Path) -> None:
    """Whose arenas lie in the same memory."""
    program = CProgram(shared(), tmp_path)
    assert len(program.drawn.constants) < 1000
    rng = np.random.default_rng(8)
    first = "first", "first", "other", "plain", "other", "first", RESET
    order = *first, "other", "plain", "first", "first", RESET, "first"
    steps: list[Step] = [key if key == RESET else (key, values(rng, program, key)) for key in order]
    check(program, steps)


def values(rng: np.random.Generator, program: CProgram, key: str) -> dict[str, Array]:
    return {port.name: random(rng, port) for port in program.images[key].inputs}


@needs_cc
def test_little_code(tmp_path: Path) -> None:
    """By small tiles, of floats and integers."""
    flash = []
    for made in (images(), quantize_models.quantized(images(), input_type="int8", output_type="int8")[0]):
        for small in (False, True):
            program = CProgram(made, tmp_path, small=small)
            check(program)
            flash.append(program.sizes.flash_bytes)
    assert flash[1] < flash[0]
    assert flash[3] < flash[2]
