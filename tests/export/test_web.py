"""Models exported for the web, run by Node: all outputs are the interpreter's."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.delegate.export import files, wasm_sections
from litecl.delegate.export.web import FILES
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Signature
from litecl.interpreter.ops.binary import ATAN2, FLOOR_MOD, POW
from litecl.interpreter.ops.unary import ABS, COS, NEG, SIN
from litecl.interpreter.schema import TensorType
from support import quantize_models, small_models, variable_models
from support.all_cases import DEVICE_CASES, content
from support.browser import Browser, needs_chromium
from support.build import Graph, model
from support.command import data, failure, small_model
from support.exported import HAS_ZIG, NONE, branching, check, images, random_steps, shared, spectrum
from support.shared import GOLDEN
from support.web_module import NODE, WebModule

pytestmark = pytest.mark.skipif(NODE is None or not HAS_ZIG, reason="no Node on the path, or not the package ziglang")


@pytest.mark.parametrize(
    "build", [small_models.chain, images, small_models.lstm, branching, shared, variable_models.MODELS["looped"]]
)
def test_models(build: Any, tmp_path: Path) -> None:
    """Floats, an LSTM with states, a loop with branches, signatures, variables with first values."""
    check(WebModule(build(), tmp_path))


@pytest.mark.parametrize("type_", ["int8", "int16"])
def test_models_of_integers_are_equal_to_the_bit(type_: str, tmp_path: Path) -> None:
    made, _ = quantize_models.quantized(images(), activations=type_, input_type=type_, output_type=type_)
    module = WebModule(made, tmp_path)
    check(module)
    assert all('"scale": ' in line for line in (tmp_path / "model.mjs").read_text().splitlines() if '"offset"' in line)


def test_functions_of_the_mathematical_library(tmp_path: Path) -> None:
    """Which are linked into the module: it imports nothing."""
    g = Graph()
    x, y = g.input((2, 9)), g.input((2, 9))
    found = [g.op(op, [x], NONE) for op in (SIN, COS)]
    found += [g.op(op, [g.op(ABS, [x], NONE), y], NONE) for op in (POW, ATAN2)]
    check(WebModule(model(g.build(*found, g.op(FLOOR_MOD, [x, y], NONE))), tmp_path))


def test_inputs_are_checked_and_a_loop_may_end_early(tmp_path: Path) -> None:
    module = WebModule(branching(), tmp_path, max_loop_iterations=5)
    i, x = (port.name for port in module.images[""].inputs)
    y = np.zeros(5, np.float32)
    good = {i: np.int32([3]), x: y}
    wrong = {i: np.int32([-1]), x: y}, {x: y}, {i: np.int32([1]), x: y[:4]}, {**good, "z": y}
    said = module.outcomes([("", values) for values in (good, *wrong, good)] + [("x", good)])
    assert said.pop() == "TypeError: there is no signature x: expected "
    assert said[0] == said[-1]
    assert said[1:-1] == [
        "RangeError: a loop took more than 5 iterations",
        f'TypeError: input "{i}": expected a Int32Array of 1 elements for [], got nothing',
        f'TypeError: input "{x}": expected a Float32Array of 5 elements for [5], got Float32Array of 4',
        f'TypeError: there is no input "z": expected {i}, {x}',
    ]


def test_types_of_elements(tmp_path: Path) -> None:
    """Of every type that a module takes, as its typed arrays."""
    g = Graph()
    types = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.INT8)
    inputs = [g.input((3,), type_) for type_ in (*types, TensorType.UINT8, TensorType.INT16)]
    module = WebModule(model(g.build(*inputs, g.op(NEG, [inputs[0]], NONE))), tmp_path)
    check(module)
    arrays = ["Float32Array", "Int32Array", "BigInt64Array", "Uint8Array", "Int8Array", "Uint8Array", "Int16Array"]
    assert [name for name, _ in module.outcomes(random_steps(module))[0]] == [*arrays, "Float32Array"]


def test_any_name(tmp_path: Path) -> None:
    g = Graph()
    x, y = g.input((3,)), g.input((3,))
    found = g.op(NEG, [x], NONE), g.op(ABS, [y], NONE)
    names = {"__proto__": x, 'a "b"\n': y}, {"__proto__": found[1], "constructor": found[0]}
    module = WebModule(model(g.build(*found), signatures=[Signature("toString", *names)]), tmp_path)
    check(module)
    ((_, values), *_) = random_steps(module)
    assert module.outcomes([("toString", values)]) == module.outcomes([("", values)])


def test_complex_numbers_are_pairs(tmp_path: Path) -> None:
    module = WebModule(spectrum(), tmp_path)
    check(module)
    ((_, elements),) = module.outcomes(random_steps(module))[0]
    assert len(elements) == 2 * 4 * 9


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = data(capsys, "export", small_model(tmp_path), "--for", "web", "-o", tmp_path / "site")
    assert [Path(row["path"]).name for row in told["files"]] == ["model.wasm", "model.mjs", "model.d.mts", "index.html"]
    assert '    "y": Float32Array;' in (tmp_path / "site" / "model.d.mts").read_text()
    assert "WebAssembly" in (tmp_path / "site" / "model.mjs").read_text()
    again = data(capsys, "export", small_model(tmp_path), "--for", "web", "-o", tmp_path / "site", "--shape", "x=2,4")
    assert [row["kept"] for row in again["files"]] == [False, False, False, True]
    assert "no effect with --for web" in failure(
        capsys, "export", "x.tflite", "--for", "web", "-o", tmp_path, "--name", "a"
    )


@pytest.mark.parametrize("build", [images, small_models.lstm, shared])
def test_weights_apart(build: Any, tmp_path: Path) -> None:
    module = WebModule(build(), tmp_path, apart=True)
    check(module)
    (tmp_path / "other").mkdir()
    inside = WebModule(build(), tmp_path / "other")
    sizes = [(folder / "model.wasm").stat().st_size for folder in (module.folder, inside.folder)]
    assert sizes[1] - sizes[0] > len(module.drawn.constants) // 2


def _refusal(module: WebModule) -> str:
    done = subprocess.run([str(NODE), "node.mjs"], cwd=module.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode
    return next(line for line in done.stderr.splitlines() if line.startswith("Error: "))


def test_files_of_another_export_are_refused(tmp_path: Path) -> None:
    """Which a browser's cache may hold: their offsets and weights are others."""
    names = "model.wasm", "model.weights"
    (tmp_path / "other").mkdir()
    module, other = WebModule(images(), tmp_path, apart=True), WebModule(spectrum(), tmp_path / "other", apart=True)
    module.run(random_steps(module))
    kept = {name: (tmp_path / name).read_bytes() for name in names}
    wrong = "Error: the weights are not of the same export as model.mjs, or not complete"
    for name, replaced, said in (
        ("model.wasm", (other.folder / "model.wasm").read_bytes(), wrong.split("weights")[0] + "module is not of the"),
        ("model.weights", (other.folder / "model.weights").read_bytes(), wrong),
        ("model.weights", kept["model.weights"][:-1], wrong),
        ("model.weights", kept["model.weights"] + b"0", wrong),
        ("model.weights", b"", wrong),
    ):
        (tmp_path / name).write_bytes(replaced)
        assert _refusal(module).startswith(said)
        (tmp_path / name).write_bytes(kept[name])
    module.run(random_steps(module))


def test_a_module_that_another_program_wrote_is_kept(tmp_path: Path) -> None:
    """Though it has a text about litecl in another place than the section of that name."""
    WebModule(images(), tmp_path)
    own = (tmp_path / "model.wasm").read_bytes()
    files.require_free(tmp_path, FILES)
    head = b"\0asm\1\0\0\0"
    for foreign in (
        own[:-33],
        own[: own.rindex(b"\6litecl")] + b"\6litecx" + own[own.rindex(b"\6litecl") + 7 :],
        head + wasm_sections.custom_section("name", "litecl, made by litecl"),
        head + b"\0\x7f\6litecl" + b"made by litecl",  # cut off
        head + b"\0\xff\xff\xff\xff\xff",
        b"made by litecl",
        b"",
    ):
        (tmp_path / "model.wasm").write_bytes(foreign)
        with pytest.raises(DelegateError, match="not a file that litecl made"):
            files.require_free(tmp_path, FILES)


def test_modules_in_wasmtime(tmp_path: Path) -> None:
    """An engine of another kind, without JavaScript; one with relaxed SIMD in an order that all engines share."""
    wasmtime = pytest.importorskip("wasmtime", reason="the package wasmtime is not installed")
    module = WebModule(images(), tmp_path, relaxed=True)
    ((_, values), *_) = random_steps(module)
    ((_, expected), *_) = module.run([("", values)])
    (image,) = module.images.values()
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    for name in ("model.wasm", "model.relaxed.wasm"):
        instance = wasmtime.Instance(store, wasmtime.Module.from_file(engine, str(tmp_path / name)), [])
        exports = instance.exports(store)
        exports["model_ready"](store, 0)
        memory, arena = exports["memory"], exports["model_arena"](store)
        for port in image.inputs:
            memory.write(store, values[port.name].tobytes(), arena + port.offset)
        assert exports["model_run"](store, 0) == 0
        for port, wanted in zip(image.outputs, expected, strict=True):
            content = memory.read(store, arena + port.offset, arena + port.offset + port.size_bytes)
            np.testing.assert_allclose(np.frombuffer(content, np.float32), wanted.ravel(), rtol=0, atol=1e-5)


TSC = shutil.which("tsc")
_TYPED = """
import { load, Model, Outputs } from "./model.mjs";
const model: Model = await load(new URL("https://example.org/model.wasm"));
const outputs: Outputs<"first"> = await model.run({ x: new Float32Array(12) }, "first");
const y: Float32Array = outputs.y, size: number = model.signatures.other.inputs.z.size;
model.reset();
"""
_WRONG = (
    'await model.run({ x: new Int8Array(12) }, "first");',
    'await model.run({ z: new Float32Array(12) }, "first");',
    'await model.run({ x: new Float32Array(12) }, "second");',
    "outputs.z;",
    "new Model();",
)


@pytest.mark.nightly
@pytest.mark.skipif(TSC is None, reason="no TypeScript (tsc) on the path")
def test_types_are_checked_by_typescript(tmp_path: Path) -> None:
    WebModule(shared(), tmp_path)
    options = "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"
    texts = {"good": _TYPED} | {f"wrong_{i}": _TYPED + wrong for i, wrong in enumerate(_WRONG)}
    for name, text in texts.items():
        (tmp_path / f"{name}.mts").write_text(text)
    command = str(TSC), *options, *(f"{name}.mts" for name in texts)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    complained = {line.split(".mts")[0] for line in done.stdout.splitlines() if ".mts(" in line}
    assert complained == {*texts} - {"good"}, done.stdout


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.mark.nightly
@needs_chromium
@pytest.mark.parametrize("build", [images, small_models.lstm, branching, shared, variable_models.MODELS["looped"]])
def test_models_in_a_browser(build: Any, browser: Browser, tmp_path: Path) -> None:
    check(WebModule(build(), tmp_path, browser))


_SHOWN = """
const seconds = (n) => new Promise((resolve) => setTimeout(resolve, 1000 * n));

/** Returns what the example shows when it is loaded, and when it has run. */
export default async () => {
    const frame = document.createElement("iframe");
    frame.src = new URL("./index.html", import.meta.url);
    document.documentElement.append(frame);
    const shown = async (start) => {
        for (;;) {
            const text = frame.contentDocument.querySelector("pre")?.textContent;
            if (text?.startsWith(start)) return text;
            await seconds(0.05);
        }
    };
    const loaded = await shown("loaded in ");
    frame.contentDocument.querySelector("button").click();
    return [loaded, await shown("50 runs took ")];
};
"""


@pytest.mark.nightly
@needs_chromium
def test_the_page_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    """Which loads the module as it comes, and runs it."""
    WebModule(images(), tmp_path)
    (tmp_path / "shown.mjs").write_text(_SHOWN)
    loaded, run = browser.run(tmp_path, "shown.mjs")
    assert "main_in0: FLOAT32 [1,9,7,3]" in loaded
    assert run.startswith("50 runs took ")


_LOOPS = sorted(GOLDEN.glob("cf_while_*.json"))


@pytest.mark.nightly
@needs_chromium
@pytest.mark.skipif(not _LOOPS, reason="../shared (goldens) is not beside this checkout")
def test_the_loops_of_the_goldens(browser: Browser, tmp_path: Path) -> None:
    """TensorFlow Lite's loops whose tensors keep their shapes; a run tells those of others."""
    right = 0
    for path in _LOOPS:
        golden = json.loads(path.read_text())
        model_file = GOLDEN / "models" / f"{path.stem}__graph.tflite"
        names = golden["graph"]["subgraphs"][0]["inputs"]
        (tmp_path / path.stem).mkdir()
        for step in golden["steps"]:
            shapes = {name: tuple(each["shape"]) for name, each in zip(names, step["feed"], strict=True)}
            try:
                module = WebModule(model_file, tmp_path / path.stem, browser, relaxed=True, shapes=shapes)
            except DelegateError as error:
                assert any(reason in str(error) for reason in ("known only at run time", "STRING", "changes shape"))
                continue
            (image,) = module.images.values()
            feeds = {
                port.name: np.array(each["data"], port.spec.dtype).reshape(each["shape"])
                for port, each in zip(image.inputs, step["feed"], strict=True)
            }
            ((_, outputs),) = module.run([("", feeds)])
            for output, expected in zip(outputs, step["expect"], strict=True):
                if expected is not None:  # of an output that nothing checks
                    np.testing.assert_array_equal(output.ravel(), expected["data"])
            right += 1
    assert right > len(_LOOPS) // 4


_INTEGER = {TensorType.INT8, TensorType.UINT8, TensorType.INT16}
_PRODUCTS = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BATCH_MATMUL"}


def _integer_cases() -> list[Case]:
    """Products whose requantization has many shifts, by channels of their own."""
    of_products = [case for case in DEVICE_CASES if case.op.name in _PRODUCTS]
    return [case for case in of_products if _INTEGER & {each.type for each in case.model().subgraphs[0].tensors}]


@pytest.mark.nightly
@needs_chromium
@pytest.mark.parametrize("relaxed", [False, True])
def test_integer_cases(relaxed: bool, browser: Browser, tmp_path: Path) -> None:
    right, refused = 0, []
    for i, case in enumerate(_integer_cases()[int(relaxed) :: 12]):
        folder = tmp_path / str(i)
        folder.mkdir()
        try:
            module = WebModule(content(case), folder, browser, relaxed=relaxed, dynamic_range="reference")
        except DelegateError:
            refused.append(case)
            continue
        check(module, random_steps(module, 2))
        right += 1
    assert right > 10 * len(refused)


@pytest.mark.nightly
@needs_chromium
@pytest.mark.parametrize("type_", ["", "int8", "int16"])
def test_relaxed_instructions(type_: str, browser: Browser, tmp_path: Path) -> None:
    """Integers stay exact where an engine has them, by a probe; Node 20's are others, if it is told to have any."""
    made = quantize_models.quantized(images(), activations=type_)[0] if type_ else images()
    module = WebModule(made, tmp_path, browser, relaxed=True, apart=True)
    check(module)
    assert '"dots"' in (tmp_path / "model.mjs").read_text() or type_ != "int8"
