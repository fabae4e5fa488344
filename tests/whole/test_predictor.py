"""``litecl.Predictor``: batches of any size on models for any, several threads and devices, and another process."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

import litecl
from litecl import Predictor
from litecl.frames import Results
from litecl.interpreter.errors import DelegateError, DeviceNotFound, ModelError, ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Signature
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.unary import TANH
from support.build import Graph, model, randn

RNG = np.random.default_rng(61)
WEIGHTS = randn(RNG, 3, 5)


def dense(shape: tuple[int, ...], signature: tuple[int, ...] | None = None) -> bytes:
    """Tanh of a dense layer, as the signature "x" to "y"."""
    g = Graph()
    x = g.input(shape, signature=signature)
    y = g.op(FULLY_CONNECTED, [x, g.const(WEIGHTS), None], FullyConnectedOptions(keep_num_dims=True))
    return write(model(g.build(g.op(TANH, [y], NoOptions())), signatures=[Signature("main", {"x": x}, {"y": y + 1})]))


CONTENTS = {"open": dense((1, 5), (-1, 5)), "for one": dense((1, 5)), "for four": dense((4, 5)), "a row": dense((5,))}


def by_litert(x: np.ndarray) -> np.ndarray:
    """What LiteRT computes, row by row."""
    interpreter = LiteRT(model_content=CONTENTS["for one"])
    runner = interpreter.get_signature_runner()
    return np.concatenate([runner(x=row[None])["y"] for row in x])


@pytest.mark.parametrize("kind", [*CONTENTS])
@pytest.mark.parametrize("options", [{"cpu": True}, {"num_threads": 1, "buffers": 2}], ids=["numpy", "device"])
def test_any_number_of_rows_on_a_model_for_any(kind: str, options: dict[str, Any]) -> None:
    with Predictor(CONTENTS[kind], **options) as predictor:
        for rows in (4, 1, 11):
            x = randn(RNG, rows, 5)
            if kind == "open" or rows % 4 or kind != "for four":
                np.testing.assert_allclose(predictor({"x": x})["y"], by_litert(x), rtol=1e-5, atol=1e-6)
    assert list(predictor.inputs) == ["x"]


def test_a_model_of_one_input_takes_an_array() -> None:
    x = randn(RNG, 7, 5)
    for kind in ("open", "for one", "for four", "a row"):
        with Predictor(CONTENTS[kind], cpu=True) as predictor:
            np.testing.assert_allclose(predictor(x)["y"], by_litert(x), rtol=1e-5, atol=1e-6)
            (mapped,) = predictor.map([x])
            np.testing.assert_array_equal(mapped["y"], predictor(x)["y"])
            np.testing.assert_array_equal(predictor.submit(x).result()["y"], mapped["y"])
            with pytest.raises(ShapeError, match="expected float32, got float64"):
                predictor(x.astype(np.float64))
    g = Graph()
    g.op(ADD, [g.input((2, 3)), g.input((2, 3))], AddOptions())
    content = write(model(g.build(2)))
    with Predictor(content, cpu=True) as predictor, pytest.raises(ModelError, match=r"by name, got ndarray"):
        predictor(randn(RNG, 2, 3))


def _framed(library: str, columns: dict[str, Any]) -> Any:
    """Return a data frame of a library, of rows that may be arrays."""
    module = pytest.importorskip(library)
    return module.DataFrame({name: [*value] if library == "pandas" else value for name, value in columns.items()})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_go_in_and_come_out(library: Any) -> None:
    x = randn(RNG, 7, 5)
    with Predictor(CONTENTS["open"], cpu=True, keep=["id"]) as predictor:
        results = predictor(_framed(library, {"x": x, "id": np.arange(7)}))
        np.testing.assert_allclose(results["y"], by_litert(x), rtol=1e-5, atol=1e-6)
        made = results.frame(library)
        assert type(made).__module__.partition(".")[0] == library
        np.testing.assert_array_equal(np.stack([np.asarray(row) for row in made["y"]]), results["y"])
        assert [*made["id"]] == [*range(7)]
        assert np.asarray(made["y"][0]).dtype == np.float32
        assert isinstance(pickle.loads(pickle.dumps(results)), dict)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_of_numbers_is_an_input_of_one_value_a_row(library: Any) -> None:
    """As the models of tables have them: an input per column, [-1, 1]."""
    g = Graph()
    a, b = (g.input((1, 1), signature=(-1, 1)) for _ in "ab")
    content = write(
        model(g.build(g.op(ADD, [a, b], AddOptions())), signatures=[Signature("s", {"a": a, "b": b}, {"sum": 2})])
    )
    columns = {"a": randn(RNG, 9), "b": randn(RNG, 9)}
    with Predictor(content, cpu=True) as predictor:
        results = predictor(_framed(library, columns))
        assert results["sum"].shape == (9, 1)
        np.testing.assert_array_equal(results["sum"][:, 0], columns["a"] + columns["b"])
        made = results.frame(library)["sum"]
        assert made.to_numpy().dtype == np.float32 and [*made] == [*results["sum"][:, 0]]


def test_results_of_different_row_counts_are_no_frame() -> None:
    for wrong in ({"a": np.zeros((2, 3)), "b": np.zeros(3)}, {"a": np.float32(1)}):
        with pytest.raises(ShapeError, match="expected equal row counts"):
            Results(wrong).frame()


def test_a_predictor_tells_what_it_takes_and_where_it_runs() -> None:
    with Predictor(CONTENTS["open"], cpu=True) as predictor:
        assert repr(predictor) == "<Predictor: x float32[-1,5] -> y; on none>"


def test_batches_come_back_in_their_order_and_keep_what_belongs_to_them() -> None:
    batches = [{"x": randn(RNG, n % 5 + 1, 5), "id": [n]} for n in range(40)]
    with Predictor(CONTENTS["open"], num_threads=1, buffers=3, keep=["id"]) as predictor:
        results = [*predictor.map(batches)]
        later = predictor.submit(batches[0])
        np.testing.assert_array_equal(later.result()["y"], results[0]["y"])
        with ThreadPoolExecutor(8) as threads:
            again = [*threads.map(predictor, batches)]
    for batch, result, other in zip(batches, results, again, strict=True):
        assert result["id"] == other["id"] == batch["id"]
        np.testing.assert_allclose(result["y"], by_litert(batch["x"]), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(result["y"], other["y"])


def test_several_devices_and_pickling_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.tflite").write_bytes(CONTENTS["open"])
    monkeypatch.chdir(tmp_path)
    predictor = litecl.Predictor("model.tflite", device=[0, 1])
    assert len(predictor.devices) == 2
    monkeypatch.chdir("/")
    content = pickle.dumps(predictor)
    assert len(content) < 1000
    x = randn(RNG, 6, 5)
    other = pickle.loads(content)
    assert other.devices == predictor.devices
    np.testing.assert_array_equal(other({"x": x})["y"], predictor({"x": x})["y"])
    assert Predictor(CONTENTS["open"], device="all").devices
    assert Predictor(CONTENTS["open"], cpu=True).devices == ["none"]


def test_programs_are_ready_and_kept_once_it_is_made(tmp_path: Path) -> None:
    """PoCL compiles a kernel for its first launch, and litecl keeps programs after that."""
    Predictor(CONTENTS["for one"], num_threads=1, cache_dir=tmp_path)
    assert [*tmp_path.rglob("*.bin")]


def test_what_does_not_fit_is_refused() -> None:
    predictor = Predictor(CONTENTS["for four"], cpu=True)
    x = randn(RNG, 4, 5)
    for batch, kind, message in (
        ({}, ModelError, r"expected a batch of \['x'\], got \[\]"),
        ({"x": x, "z": x}, ModelError, r"got \['x', 'z'\]"),
        ({"x": x.astype(np.float64)}, ShapeError, "expected float32, got float64"),
        ({"x": x[:, :4]}, ShapeError, r"expected \[rows, 5\], got \[4, 4\]$"),
        ({"x": x[:0]}, ShapeError, "at least one row"),
    ):
        with pytest.raises(kind, match=message):
            predictor(batch)
    np.testing.assert_allclose(predictor({"x": x})["y"], by_litert(x), rtol=1e-5, atol=1e-6)
    with pytest.raises(ShapeError, match=r"expected \[rows, 5\], got \[5\]: for a single row, pass value\[None\]$"):
        predictor({"x": x[0]})
    with pytest.raises(DeviceNotFound):
        Predictor(CONTENTS["open"], device="nothing")
    for cpu in (False, True):
        with pytest.raises(TypeError, match="there is no option 'threads'; did you mean 'num_threads'"):
            Predictor(CONTENTS["open"], cpu=cpu, threads=2)
    with pytest.raises(ModelError, match="closed"), predictor:
        predictor.close()
        predictor({"x": x})


def test_outputs_without_rows_and_inputs_of_different_numbers_of_them_are_refused() -> None:
    g = Graph()
    x, z = g.input((2, 5)), g.input((2, 5))
    both = g.op(ADD, [x, z], AddOptions())
    summed = g.op(MEAN, [both, g.const(np.array([0], np.int32))], ReducerOptions(keep_dims=False))
    names = {"x": x, "z": z}
    content = write(
        model(
            g.build(both, summed),
            signatures=[Signature("rows", names, {"y": both}), Signature("sum", names, {"y": summed})],
        )
    )
    predictor = Predictor(content, signature="rows", cpu=True)
    values = {"x": randn(RNG, 3, 5), "z": randn(RNG, 3, 5)}
    np.testing.assert_allclose(predictor(values)["y"], values["x"] + values["z"], rtol=1e-6)
    with pytest.raises(ShapeError, match="equal row counts"):
        predictor({**values, "z": values["z"][:1]})
    with pytest.raises(ShapeError, match="output 'y': expected 2 rows"):
        Predictor(content, signature="sum", cpu=True)(values)


def test_a_device_that_is_required() -> None:
    with Predictor(CONTENTS["open"], num_threads=1, require_device=True) as predictor:
        assert predictor({"x": randn(RNG, 2, 5)})["y"].shape == (2, 3)
    for options in ({"cpu": True}, {"deny_ops": ["TANH"], "num_threads": 1}):
        with pytest.raises(DelegateError, match=r"require_device: (the CPU was selected|the CPU runs 1 of 2 nodes)"):
            Predictor(CONTENTS["open"], require_device=True, **options)


def test_it_says_where_its_nodes_run() -> None:
    report = Predictor(CONTENTS["open"], num_threads=1, deny_ops=["TANH"]).delegation_report()
    assert [row.reason for row in report.nodes if not row.claimed] == ["denied by deny_ops"]
    with pytest.raises(DelegateError, match="numpy runs every node"):
        Predictor(CONTENTS["open"], cpu=True).delegation_report()
