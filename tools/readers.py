"""Which programs take the converter's files: the table in docs/guides/converting.md.

    PYTHONPATH=tests python -m tools.readers [--page docs/guides/converting.md]

It needs node, and pip install ai-edge-litert openvino onnxruntime tf2onnx tensorflow tflite-micro ethos-u-vela
apache-tvm tflite netron ai-edge-model-explorer. A reader that isn't installed is left out. Each reads in a process of
its own; the table says "no" of one that dies or takes more than three minutes.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.perf.feeds import labels, random_inputs
from litecl.where.measure import PACKAGES, Measured, measure
from litecl.where.observe import apart, run
from litecl.where.seen import CLOSE

_HEADING = "## In other programs\n"
_TEXT = """
Models of a few layers, converted by litecl, in other programs; from the whole model on random inputs, the largest
difference to litecl's interpreter: bits, steps of integers, or of floats relative to the largest magnitude. Vela
compiles (for an Ethos-U55: operators of its own on the NPU and on the CPU), Netron and Model Explorer show nodes. Of
two signatures the first ran.
`PYTHONPATH=tests python -m tools.readers --page docs/guides/converting.md` writes this table. [Where models
run](../runtimes.md) has operators one by one.

"""
_TIMEOUT_S = 180
_REASON = 110
_ERROR = re.compile(r"[\w.]*(Error|Exception|NotImplemented|Unsupported)\w*:? ")
_RUNTIMES = ("litert", "openvino", "onnxruntime", "tflite_micro", "vela")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="write the table to this page")
    parser.add_argument("--read", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.read:
        print("\n" + json.dumps(_OTHERS[args.read[0]][2](Path(args.read[1]))))
        return 0
    text = _table()
    if args.page is None:
        print(text)
    else:
        page = args.page.read_text()
        section = re.compile(re.escape(_HEADING) + r".*?(?=^## )", re.DOTALL | re.MULTILINE)
        args.page.write_text(section.sub(lambda _: _HEADING + _TEXT + text + "\n", page))
    return 0


def _table() -> str:
    readers = [name for name in _RUNTIMES if all(map(find_spec, PACKAGES[name]))]
    others = {name: version(package) for name, (module, package, _) in _OTHERS.items() if find_spec(module)}
    versions = dict.fromkeys(readers, "") | others
    lines, reasons = [], []
    for file, make in files().items():
        content = make()
        cells = []
        for reader in versions:
            answer = _read(reader, content)
            versions[reader] = answer.version or versions[reader]  # a runtime that dies doesn't say it
            if answer.refused is not None:
                reasons.append(f"- {reader}, {file}: {textwrap.shorten(answer.refused, _REASON, placeholder=' ...')}")
            cells.append(_cell(answer))
        lines.append(f"| {file} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    head = [
        f"| file | {' | '.join(f'{name} {number}'.rstrip() for name, number in versions.items())} |",
        "|---" * (len(versions) + 1) + "|",
    ]
    return "\n".join((*head, *lines, "", "What they say:", "", *reasons, ""))


def _read(reader: str, content: bytes) -> Measured:
    if reader in _RUNTIMES:
        return measure(content, reader, 0, _TIMEOUT_S)
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder, "model.tflite")).write_bytes(content)
        try:
            ended = subprocess.run(_command(reader, path), capture_output=True, text=True, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return Measured(reader, "", f"no answer within {_TIMEOUT_S} s", {})
    if ended.returncode or not ended.stdout:
        lines = ended.stderr.strip().splitlines() or [f"its process ended with {ended.returncode}"]
        errors = [line for line in lines if _ERROR.match(line)]
        return Measured(reader, "", (errors or lines)[-1], {})
    return Measured(reader, "", None, **json.loads(ended.stdout.splitlines()[-1]))


def _command(reader: str, path: Path) -> list[str]:
    return [sys.executable, "-m", "tools.readers", "--read", reader, str(path)]


def _cell(answer: Measured) -> str:
    if answer.refused is not None:
        return "no"
    if answer.placed:
        return answer.placed.partition(":")[0].replace(" operators", "").replace(" operator", "")
    if any(one["wrong"] for one in answer.outputs.values()):
        return "differs by far"
    steps = max(one["steps"] for one in answer.outputs.values())
    relative = max(one["relative"] for one in answer.outputs.values())
    if steps or relative > CLOSE:
        return f"{steps:.0f} step{'s' if steps > 1 else ''}" if steps else f"differs, {relative:.0e}"
    return "rounds" if relative else "same bits"


def _in_tvm(path: Path) -> dict[str, Any]:
    import tflite
    import tvm
    from tvm import relax
    from tvm.relax.frontend.tflite import from_tflite

    content = path.read_bytes()
    reference = Interpreter(model_content=content)
    details = reference.get_input_details()
    values = random_inputs(details, 0)
    module = from_tflite(tflite.Model.GetRootAsModel(content, 0))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    feeds = [values[label] for label in labels(details)]
    got = machine["main"](*map(tvm.runtime.tensor, feeds))
    arrays = [got] if hasattr(got, "numpy") else [*got]
    expected = run(reference, feeds)
    names = labels(reference.get_output_details())
    return {"outputs": {n: apart(x.numpy(), y) for n, x, y in zip(names, arrays, expected, strict=True)}}


def _in_netron(path: Path) -> dict[str, Any]:
    spec = find_spec("netron")
    assert spec is not None and spec.origin is not None
    script = Path(__file__).with_name("netron.mjs")
    command = ["node", str(script), str(Path(spec.origin).parent), str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S)
    return _shown(path, len(json.loads(ended.stdout)))


def _in_model_explorer(path: Path) -> dict[str, Any]:
    import ai_edge_model_explorer_adapter as adapter

    answer = json.loads(adapter.ConvertFlatbufferDirectlyToJson(adapter.VisualizeConfig(), str(path)))
    graphs = [graph for collection in answer for graph in collection["subgraphs"]]
    own = ("GraphInputs", "GraphOutputs", "pseudo_const")
    return _shown(path, sum(node["label"] not in own for graph in graphs for node in graph["nodes"]))


def _shown(path: Path, count: int) -> dict[str, Any]:
    nodes = sum(len(graph.nodes) for graph in read(path.read_bytes()).subgraphs)
    return {"outputs": {}, "placed": f"{count} of {nodes} nodes"}


_OTHERS: Mapping[str, tuple[str, str, Callable[[Path], dict[str, Any]]]] = {
    "TVM": ("tvm", "apache-tvm", _in_tvm),
    "Netron": ("netron", "netron", _in_netron),
    "Model Explorer": ("model_explorer", "ai-edge-model-explorer", _in_model_explorer),
}
"""Readers that are no runtimes of ``litecl where``: their module, their package, and what reads a file."""


def files() -> Mapping[str, Callable[[], bytes]]:
    """Return what makes each file, by name."""
    import keras
    import tensorflow as tf

    from litecl.converter import Converter, Quantization
    from support import tf_composites
    from support.keras_models import randomise, stack
    from support.tf_control_flow import Counters

    layers = keras.layers

    def dense() -> Any:
        return randomise(stack(layers.Dense(64, activation="relu"), layers.Dense(32), shape=(48,), batch_size=1))

    def convolutions() -> Any:
        parts = layers.Conv2D(4, 3, activation="relu"), layers.DepthwiseConv2D(3), layers.MaxPool2D(), layers.Flatten()
        return randomise(stack(*parts, layers.Dense(3, activation="softmax"), batch_size=1))

    def lstm() -> Any:
        return randomise(stack(layers.LSTM(8, return_sequences=True), layers.LSTM(5), shape=(6, 4), batch_size=1))

    def samples(model: Any) -> list[list[Any]]:
        random = np.random.default_rng(0)
        return [[random.standard_normal(model.inputs[0].shape).astype(np.float32)] for _ in range(8)]

    def of_keras(model: Any, activations: str | None = None, weights: str | None = None, **options: Any) -> bytes:
        how: Any = None
        if activations:
            how = Quantization(activations=activations, data=samples(model), input_type="int8", output_type="int8")
        elif weights:
            how = Quantization(weights=weights)
        return bytes(Converter.from_keras_model(model, quantize=how, **options).convert())

    def of_function(function: Callable[..., Any], *specs: Any) -> bytes:
        concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
        return bytes(Converter.from_concrete_functions([concrete], None).convert())

    def of_module(module: Any, **signatures: Any) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(module, folder, signatures=signatures)
            return bytes(Converter.from_saved_model(folder).convert())

    def two_signatures() -> bytes:
        module = tf.Module()
        module.add = tf.function(lambda x: {"y": x + 1.0}, input_signature=[row])
        module.double = tf.function(lambda x: {"y": x * 2.0}, input_signature=[row])
        return of_module(module, add=module.add, double=module.double)

    def variables() -> bytes:
        module = Counters()
        return of_module(module, straight=module.straight)

    row = tf.TensorSpec((1, 4), tf.float32, name="x")
    return {
        "Dense": lambda: of_keras(dense()),
        "Dense, int8 weights": lambda: of_keras(dense(), weights="int8"),
        "Dense, float16 weights": lambda: of_keras(dense(), weights="float16"),
        "convolutions": lambda: of_keras(convolutions()),
        "convolutions, int8": lambda: of_keras(convolutions(), "int8"),
        "LSTM, fused": lambda: of_keras(lstm()),
        "LSTM, int8": lambda: of_keras(lstm(), "int8"),
        "LSTM, int8, states as variables": lambda: of_keras(lstm(), "int8", lstm="variables"),
        "IF": lambda: of_function(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: tf.exp(x)), row),
        "WHILE": lambda: of_function(
            lambda x: tf.while_loop(lambda y: tf.reduce_sum(y) < 90.0, lambda y: (y * y + 1.0,), (x,))[0], row
        ),
        "variables": variables,
        "two signatures": two_signatures,
        "composite, fused": lambda: of_function(
            tf_composites.lookup("embedding_lookup"), tf.TensorSpec((5,), tf.int32)
        ),
        "litecl's own operator": lambda: of_function(lambda x: tf.linalg.qr(tf.reshape(x, (2, 2)))[1], row),
    }


if __name__ == "__main__":
    sys.exit(main())
