"""PyTorch's exported programs, which litert-torch converts, in an environment that has it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.converter import Converter
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from support import oracle
from support.command import data
from support.quantize_models import run

torch: Any = pytest.importorskip("torch", reason="torch and litert-torch have an environment of their own")
litert_torch: Any = pytest.importorskip("litert_torch", reason="litert-torch has an environment of its own")

_STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}


@pytest.fixture(autouse=True)
def _short_and_narrow_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("litecl.converter.unrolled.gru.LEAST", 0)


class Recurrent(torch.nn.Module):  # type: ignore[misc]
    """A recurrent layer with the sequence and the last states as results; given: the first states are inputs."""

    def __init__(self, kind: str, given: bool = False, **options: Any) -> None:
        super().__init__()
        self.layer = getattr(torch.nn, kind)(6, 5, **options)
        self.pairs = kind == "LSTM"

    def forward(self, x: Any, *states: Any) -> Any:
        given = (states if self.pairs else states[0]) if states else None
        made, last = self.layer(x, given)
        return (made, *last) if self.pairs else (made, last)


class Alone(torch.nn.Module):  # type: ignore[misc]
    """A recurrent layer with the sequence as its result."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layer = getattr(torch.nn, kind)(6, 5, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.layer(x)[0]


class Cells(torch.nn.Module):  # type: ignore[misc]
    """A loop over a cell."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = getattr(torch.nn, f"{kind}Cell")(6, 5)
        self.pairs = kind == "LSTM"

    def forward(self, x: Any, *states: Any) -> Any:
        made, state = [], states if self.pairs else states[0]
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            made.append(state[0] if self.pairs else state)
        return torch.stack(made, 1), made[-1]


def exported(module: Any, *shapes: tuple[int, ...], dynamic: Any = None) -> Any:
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return torch.export.export(module.eval(), tuple(map(torch.randn, shapes)), dynamic_shapes=dynamic)


def assert_as_torch(program: Any, content: bytes, *shapes: tuple[int, ...]) -> None:
    """LiteRT, interpreter and device compute what torch does, again and again."""
    runtimes = [Interpreter(content), Interpreter(content, delegates=[CLDelegate()])]
    for runtime in runtimes:
        for detail, shape in zip(runtime.get_input_details(), shapes, strict=True):
            runtime.resize_tensor_input(detail["index"], shape)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        feeds: list[Array] = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        with torch.no_grad():
            results = program.module()(*map(torch.from_numpy, feeds))
        expected = [result.numpy() for result in (results if isinstance(results, tuple) else (results,))]
        for got in (oracle.run(content, feeds), *(run(runtime, feeds) for runtime in runtimes)):
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=3e-6)


_LAYERS: tuple[tuple[tuple[int, ...], dict[str, Any], bool, int], ...] = (
    ((1, 4, 6), {"batch_first": True}, False, 1),
    ((3, 4, 6), {"batch_first": True}, False, 1),
    ((4, 2, 6), {}, True, 1),
    ((2, 4, 6), {"batch_first": True, "bias": False}, True, 1),
    ((1, 4, 6), {"batch_first": True, "num_layers": 2, "bidirectional": True}, False, 4),
    ((4, 3, 6), {"num_layers": 2}, True, 2),
    ((2, 2, 6), {"batch_first": True}, False, 1),
    ((1, 1, 6), {"batch_first": True}, True, 0),
    ((1, 30, 6), {"batch_first": True}, True, 1),
)


@pytest.mark.parametrize("kind", _STATES)
@pytest.mark.parametrize(("shape", "options", "given", "layers"), _LAYERS)
def test_recurrent_layers(kind: str, shape: tuple[int, ...], options: dict[str, Any], given: bool, layers: int) -> None:
    batch = shape[0 if options.get("batch_first") else 1]
    state = (options.get("num_layers", 1) * (1 + options.get("bidirectional", False)), batch, 5)
    shapes = (shape, *(state,) * (_STATES[kind] * given))
    program = exported(Recurrent(kind, given, **options), *shapes)
    converter = Converter.from_exported_program(program)
    content = converter.convert()
    assert [fusion.name for fusion in converter.report.fusions] == [f"unrolled {kind}"] * layers
    assert_as_torch(program, content, *shapes)


@pytest.mark.parametrize("kind", _STATES)
def test_loops_over_cells(kind: str) -> None:
    shapes = ((2, 7, 6), *((2, 5),) * _STATES[kind])
    program = exported(Cells(kind), *shapes)
    converter = Converter.from_exported_program(program)
    assert_as_torch(program, converter.convert(), *shapes)
    assert len(converter.report.fusions) == 1


@pytest.mark.parametrize("shape", [(1, 5, 6), (3, 5, 6)])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2}, {"bidirectional": True}])
@pytest.mark.parametrize("given", [False, True])
def test_simple_layers_of_relu(shape: tuple[int, ...], options: dict[str, Any], given: bool) -> None:
    layers = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    shapes = (shape, *((layers, shape[0], 5),) * given)
    program = exported(Recurrent("RNN", given, nonlinearity="relu", batch_first=True, **options), *shapes)
    converter = Converter.from_exported_program(program)
    content = converter.convert()
    assert [fusion.name for fusion in converter.report.fusions] == ["unrolled RNN"] * layers
    assert_as_torch(program, content, *shapes)


def test_projections_stay_unrolled() -> None:
    program = exported(Recurrent("LSTM", proj_size=3, batch_first=True), (2, 4, 6))
    converter = Converter.from_exported_program(program)
    assert_as_torch(program, converter.convert(), (2, 4, 6))
    assert not converter.report.fusions


def test_unrolled_if_asked_for() -> None:
    program = exported(Recurrent("GRU"), (4, 1, 6))
    converter = Converter.from_exported_program(program, roll_up=False)
    assert_as_torch(program, converter.convert(), (4, 1, 6))
    assert not converter.report.fusions


def _dense() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.GELU(), torch.nn.LayerNorm(5))


def _images() -> Any:
    layers = (torch.nn.Conv2d(3, 4, 3, padding=1, stride=2), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 5))


def _encoder() -> Any:
    return torch.nn.TransformerEncoderLayer(6, 2, 16, batch_first=True)


_OPEN: tuple[tuple[Callable[[], Any], tuple[int, ...], tuple[int, ...]], ...] = (
    (_dense, (2, 4, 6), (0, 1)),
    (_images, (2, 3, 8, 8), (0,)),
    (_encoder, (2, 4, 6), (0,)),
    (_encoder, (1, 4, 6), (1,)),
    (lambda: Alone("LSTM"), (2, 4, 6), (0,)),
    (lambda: Alone("GRU"), (2, 4, 6), (0,)),
)


@pytest.mark.parametrize(("make", "shape", "axes"), _OPEN)
def test_open_dimensions_stay_open(make: Callable[[], Any], shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    dims = {axis: torch.export.Dim(f"d{axis}", min=2, max=40) for axis in axes}
    program = exported(make(), shape, dynamic=(dims,))
    content = Converter.from_exported_program(program).convert()
    (x,) = read(content).subgraphs[0].inputs
    signature = read(content).subgraphs[0].tensors[x].shape_signature
    assert signature == tuple(-1 if axis in axes else size for axis, size in enumerate(shape))
    for size in (2, 9):
        assert_as_torch(program, content, tuple(size if axis in axes else n for axis, n in enumerate(shape)))


def test_shapes_of_inputs_fix_open_dimensions() -> None:
    batch = torch.export.Dim("batch", min=2, max=40)
    program = exported(Alone("LSTM"), (2, 4, 6), dynamic=({0: batch},))
    converter = Converter.from_exported_program(program, {"x": (3, 4, 6)})
    assert_as_torch(program, converter.convert(), (3, 4, 6))
    assert len(converter.report.fusions) == 1
    with pytest.raises(ConversionError, match="there is no input 'y'"):
        Converter.from_exported_program(program, {"y": (3, 4, 6)}).convert()
    with pytest.raises(ConversionError, match="expected 4 in the shape of 'x', got 5"):
        Converter.from_exported_program(program, {"x": (3, 5, 6)}).convert()


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"expected a torch\.export\.ExportedProgram, .* got Linear"):
        Converter.from_exported_program(torch.nn.Linear(2, 2)).convert()
    (tmp_path / "bad.pt2").write_bytes(b"nothing")
    with pytest.raises(ConversionError, match="torch does not load it"):
        Converter.from_exported_program(tmp_path / "bad.pt2").convert()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.export.save(exported(Recurrent("LSTM", batch_first=True), (1, 8, 6)), tmp_path / "net.pt2")
    found = data(capsys, "convert", tmp_path / "net.pt2", "-o", tmp_path / "net.tflite", "--verify")
    assert found["conversion"]["operators"]["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    assert len(found["differences"]) == 3
    assert all(each["largest"] < 1e-5 for each in found["differences"])
    found = data(capsys, "convert", tmp_path / "net.pt2", "-o", tmp_path / "long.tflite", "--keep-unrolled")
    assert found["conversion"]["operators"]["LOGISTIC"] > 20
