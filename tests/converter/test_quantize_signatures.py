"""Models of several signatures: weights that they share, and signatures of different types in one file."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from ai_edge_litert.interpreter import Interpreter as LiteRT  # noqa: E402
from ai_edge_litert.interpreter import OpResolverType  # noqa: E402

from litecl.converter import Converter, Quantization  # noqa: E402
from litecl.delegate import CLDelegate  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from litecl.interpreter.graph import Array  # noqa: E402
from litecl.interpreter.schema import TensorType  # noqa: E402
from support import compare  # noqa: E402
from support.command import data  # noqa: E402

_RNG = np.random.default_rng(17)
_DEPTH, _UNITS, _CLASSES = 96, 256, 20
_X = {
    "exact": _RNG.standard_normal((1, _DEPTH)).astype(np.float32),
    "fast": _RNG.standard_normal((4, _DEPTH)).astype(np.float32),
}
_WEIGHTS = _DEPTH * _UNITS + _UNITS * _CLASSES  # numbers


class Layers(tf.Module):
    """Two layers, behind one signature for single rows and one for four at once."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = [
            tf.Variable(_RNG.normal(0, 0.1, s).astype(np.float32)) for s in ((_DEPTH, _UNITS), (_UNITS, _CLASSES))
        ]
        self.bias = tf.Variable(_RNG.standard_normal(_UNITS).astype(np.float32))

    def __call__(self, x: Any) -> Any:
        return {"y": tf.matmul(tf.nn.relu(tf.matmul(x, self.weights[0]) + self.bias), self.weights[1])}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SavedModel with both signatures."""
    folder, layers = tmp_path_factory.mktemp("signatures"), Layers()
    functions = {
        key: tf.function(layers.__call__, autograph=False).get_concrete_function(tf.TensorSpec(x.shape, name="x"))
        for key, x in _X.items()
    }
    tf.saved_model.save(layers, folder, signatures=functions)
    return folder


def _data() -> list[tuple[str, dict[str, Array]]]:
    rng = np.random.default_rng(2)
    return [(key, {"x": rng.standard_normal(x.shape).astype(np.float32)}) for key, x in _X.items() for _ in range(16)]


_INT8 = Quantization(activations="int8", data=_data)
_KINDS: Mapping[str, tuple[Any, float]] = {  # with the bytes of a weight
    "float": (None, 4),
    "halves": ("float16", 2),
    "dynamic range": ("int8", 1),
    "integers": (_INT8, 1),
    "16x8": (Quantization(activations="int16", data=_data), 1),
    "a recipe": (Quantization(recipe="dynamic_wi4_afp32"), 0.5),
}


def _results(content: bytes, make: Callable[[bytes], Any]) -> dict[str, Array]:
    runtime = make(content)
    return {key: runtime.get_signature_runner(key)(x=x)["y"] for key, x in _X.items()}


def _litert(content: bytes) -> Any:
    return LiteRT(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)


def _check(content: bytes) -> dict[str, Array]:
    """Every signature computes what LiteRT's does, on the interpreter and on the device."""
    wanted = _results(content, _litert)
    for delegates in ([], [CLDelegate(dynamic_range="reference")]):
        got = _results(content, lambda model, used=delegates: Interpreter(model_content=model, delegates=used))
        for key, value in wanted.items():
            compare.assert_close(got[key], value, 1e-5)
    return wanted


@pytest.mark.parametrize("kind", _KINDS)
def test_shared_weights_are_stored_once(kind: str, saved: Path) -> None:
    """A second signature takes its graph and the scales of its tensors, and no weights."""
    quantize, weight_bytes = _KINDS[kind]
    alone = Quantization(activations=quantize.activations, data=_data()[:16]) if kind in ("integers", "16x8") else None
    one = Converter.from_saved_model(saved, ["exact"], quantize=alone or quantize).convert()
    both = Converter.from_saved_model(saved, quantize=quantize).convert()
    assert len(one) > _WEIGHTS * weight_bytes
    assert len(both) - len(one) < 0.5 * _WEIGHTS * weight_bytes
    graphs = read(both).subgraphs
    stored = [{t.data.tobytes() for t in g.tensors if t.data is not None and t.data.size > 2000} for g in graphs]
    assert stored[0] == stored[1]
    _check(both)


@pytest.mark.parametrize("kind", ["halves", "dynamic range", "integers", "a recipe"])
def test_one_signature_is_quantized_and_one_is_not(kind: str, saved: Path) -> None:
    """The float signature is the same as in a model in float; both forms of the weights are stored once."""
    whole, weight_bytes = _KINDS[kind]
    options = {"weights": whole} if isinstance(whole, str) else {}
    if kind == "a recipe":
        options = {"recipe": "dynamic_wi4_afp32"}
    if kind == "integers":
        options = {"activations": "int8", "data": [sample for sample in _data() if sample[0] == "fast"]}
    content = Converter.from_saved_model(saved, quantize=Quantization(signatures=("fast",), **options)).convert()
    plain = Converter.from_saved_model(saved).convert()
    assert len(plain) < len(content) < len(plain) + 1.35 * _WEIGHTS * weight_bytes + 6000
    got, wanted = _check(content), _results(plain, _litert)
    np.testing.assert_array_equal(got["exact"], wanted["exact"])
    apart = np.abs(got["fast"] - wanted["fast"]).max() / np.abs(wanted["fast"]).max()
    assert 0 < apart < {"halves": 1e-3, "a recipe": 0.3}.get(kind, 0.05)
    by_key = {s.key: read(content).subgraphs[s.subgraph] for s in read(content).signatures}
    small = {TensorType.INT8, TensorType.INT4, TensorType.FLOAT16}
    assert not any(t.type in small for t in by_key["exact"].tensors)
    assert any(t.type in small for t in by_key["fast"].tensors)


def test_commands(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, mixed, again = tmp_path / "float.tflite", tmp_path / "mixed.tflite", tmp_path / "again.tflite"
    data(capsys, "convert", saved, "-o", plain)
    flags = "--quantize", "int8", "--quantize-signature", "fast"
    data(capsys, "quantize", plain, *flags, "-o", mixed)
    data(capsys, "convert", saved, *flags, "-o", again)
    for path in (mixed, again):
        np.testing.assert_array_equal(
            _results(path.read_bytes(), _litert)["exact"], _results(plain.read_bytes(), _litert)["exact"]
        )
        assert plain.stat().st_size + _WEIGHTS < path.stat().st_size < plain.stat().st_size + 1.5 * _WEIGHTS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signatures": ("slow",)}, r"there are no signatures \['slow'\]; the model has \['exact', 'fast'\]"),
        ({"signatures": "fast"}, "expected signatures to be a tuple of names, got 'fast'"),
        ({"signatures": ("fast",), "budget": "1MB", "data": _data}, "leave signatures out"),
    ],
)
def test_refused(options: dict[str, Any], message: str, saved: Path) -> None:
    with pytest.raises(ConversionError, match=message):
        Converter.from_saved_model(saved, quantize=Quantization(**options)).convert()


def test_a_subgraph_of_both_is_refused(saved: Path) -> None:
    """It cannot be in integers for one signature and in float for the other."""
    model = read(Converter.from_saved_model(saved).convert())
    shared = tuple(replace(signature, subgraph=0) for signature in model.signatures)
    with pytest.raises(ConversionError, match=r"signatures \['fast'\] have a subgraph that signatures run which stay"):
        Converter.from_tflite(replace(model, signatures=shared), Quantization(signatures=("fast",))).convert()
