"""What `litecl serve` reads and writes: JSON in slices, values that their type holds, binary tensors."""

import json
import random
import struct
from typing import Any

import numpy as np
import pytest

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.serve.json_arrays import parse, pieces
from litecl.serve.protocol import Interface, Request, Wanted, answer_of, body_limit, request_of

_MOST = 1 << 20


def _plain(value: Any) -> Any:
    """Return a document as ``json.loads`` has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _random(rng: random.Random, depth: int, reals: bool) -> Any:
    """Return a document whose numbers are all real or all whole, as an array has them."""
    kind = rng.randrange(9 if depth else 6)
    if kind >= 6:
        items = [_random(rng, depth - 1, reals) for _ in range(rng.randrange(5))]
        return items if kind < 8 else {rng.choice("abcde"): each for each in items}
    numbers = [(rng.random() * 1e9 if reals else rng.randrange(-(2**70), 2**70)) for _ in range(rng.randrange(1, 4))]
    return [True, None, False, numbers[0], rng.choice(["", 'a]"[{,é', "\ud800"]), numbers][kind]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("reals", [True, False])
def test_documents_are_read_as_by_json(indent: int | None, reals: bool) -> None:
    rng = random.Random(4)
    for _ in range(2000):
        document = _random(rng, 4, reals)
        read = _plain(parse(json.dumps(document, indent=indent), _MOST))
        assert json.dumps(read) == json.dumps(document)  # 1, 1.0 and True are equal in Python


@pytest.mark.parametrize(
    "values",
    [
        [*range(50_000)],
        [x / 7 for x in range(50_000)],
        [2**63 - 1] * 30_000 + [2**64 - 1] * 30_000,
        [1] * 30_000 + [True] * 30_000,
        [True, False] * 30_000,
        [[[n, n + 1, n + 2] for n in range(100)]] * 200,
        [1] * 30_000 + [None],
    ],
    ids=["whole", "real", "wide", "mixed", "bool", "nested", "null"],
)
def test_long_arrays_are_read_and_written_whole(values: list[Any]) -> None:
    array = parse(json.dumps({"data": values}), _MOST)["data"]
    assert isinstance(array, np.ndarray)
    assert json.dumps(array.tolist()) == json.dumps(values)
    flat = array.reshape(-1)
    assert json.dumps(json.loads(f"[{', '.join(pieces(array))}]")) == json.dumps(flat.tolist())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[1, 2", "Expecting value|expected ','"),
        ("[1, 2,]", "Expecting value|expected a value"),
        ("[" + "1," * 40_000 + "]", "Expecting value|expected a value"),
        ("[1 2]", "Expecting ',' delimiter"),
        ("[NaN]", "JSON has no NaN"),
        ('{"a": -Infinity}', "JSON has no -Infinity"),
        ("{1: 2}", "expected a string as a name"),
        ('{"a" 2}', "expected ':'"),
        ('{"a": 2} 3', "expected the end"),
        ("[" * 40 + "]" * 40, "nested deeper than 16"),
        ("[" + "9" * 5000 + "]", "4300 digits"),
        ("[" + "9" * 400 + ", 0.5]", "too large"),
        ("[" + "[]," * 70_000 + "[]]", "more than 65536 items"),
        ("[" + ",".join(["[" + "{}," * 40 + "{}]"] * 50) + "]", "more than 1000 values"),
    ],
)
def test_what_is_no_json_or_too_much_is_refused(text: str, reason: str) -> None:
    most = 1000 if "1000" in reason else _MOST
    with pytest.raises(ModelError, match=reason) as caught:
        parse(text, most)
    assert len(str(caught.value)) < 200


def _asked(tensor: dict[str, Any], after: bytes = b"", **other: Any) -> Request:
    """Return a request for a model of an input x and outputs y and z."""
    head = json.dumps({"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", **tensor}], **other}).encode()
    return request_of(head + after, str(len(head)) if after else None, Interface(["x"], ["y", "z"]))


@pytest.mark.parametrize(
    ("datatype", "data", "values"),
    [
        ("FP32", [1, -2.5], np.float32([1, -2.5])),
        ("FP32", [[3.4e38], [1e-60]], np.float32([3.4e38, 0])),
        ("FP16", [65504, 2**-24], np.float16([65504, 2**-24])),
        ("FP64", [1e300, 2**70], np.float64([1e300, 2**70])),
        ("INT64", [2**63 - 1, -(2**63)], np.int64([2**63 - 1, -(2**63)])),
        ("UINT64", [2**64 - 1, 0], np.uint64([2**64 - 1, 0])),
        ("UINT8", [0, 255], np.uint8([0, 255])),
        ("BOOL", [True, False], np.bool_([True, False])),
        ("BYTES", ["a", "é"], np.array(["a", "é"], np.object_)),
    ],
)
def test_values_have_their_type(datatype: str, data: list[Any], values: Array) -> None:
    x = _asked({"datatype": datatype, "data": data}).batch["x"]
    assert x.dtype == values.dtype and x.tolist() == values.tolist()


@pytest.mark.parametrize(
    ("datatype", "data", "reason"),
    [
        ("FP32", [1e300, 0.0], "FP32 holds at most 3.40282e\\+38"),
        ("FP32", [2**200, 0], "FP32 holds at most"),
        ("FP32", [10**400, 0], "FP32 holds at most"),
        ("FP16", [65520, 0], "FP16 holds at most 65504"),
        ("FP64", "[1e400, 0]", "FP64 holds at most"),
        ("FP32", [True, 0], "expected FP32, got bool"),
        ("FP32", [None, 0.5], "expected FP32, got NoneType"),
        ("FP32", ["1", "2"], "expected FP32, got str"),
        ("INT8", [128, 0], "INT8 holds -128 to 127"),
        ("UINT8", [-1, 0], "UINT8 holds 0 to 255"),
        ("UINT64", [2**64, 0], "UINT64 holds 0 to"),
        ("INT32", [1.0, 2], "expected INT32, got float"),
        ("INT32", [True, 2], "expected INT32, got bool"),
        ("BOOL", [0, 1], "expected BOOL, got int"),
        ("BYTES", [1, 2], "expected BYTES, got int"),
        ("FP32", [[1], [2, 3]], "expected rows of equal length|expected FP32"),
        ("FP32", {"a": 1}, "expected data"),
        ("COMPLEX", [1, 2], "expected a datatype of"),
    ],
)
def test_values_that_a_type_cannot_hold_are_refused(datatype: str, data: Any, reason: str) -> None:
    body = '{"inputs": [{"name": "x", "shape": [2], "datatype": "%s", "data": %s}]}'
    text = data if isinstance(data, str) else json.dumps(data)
    with pytest.raises(ModelError, match=reason):
        request_of((body % (datatype, text)).encode(), None, Interface(["x"], ["y"]))


@pytest.mark.parametrize(
    "shape",
    [[3], [-2], ["2"], [2.0], [True, 2], 2, None, [1] * 33 + [2], [2**31, 0], [0, 2**63], [2**70], [0, 2**20, 2**20]],
    ids=str,
)
def test_shapes_that_are_none_are_refused(shape: Any) -> None:
    with pytest.raises(ModelError, match=r"expected (\[3\]|a shape|dimensions)"):
        _asked({"shape": shape, "data": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"outputs": [{"name": "y"}, {"name": "y"}]}, "expected each name once, got 'y' again"),
        ({"outputs": [{"name": "n" * 10_000}]}, "expected names of"),
        ({"outputs": ["y"]}, "expected an array of objects"),
        ({"outputs": [{"name": "y", "parameters": {"classification": 3}}]}, "expected no parameter but binary_data"),
        ({"id": 7}, "id: expected a string"),
        ({"id": "7" * 2000}, "id: expected a string"),
        ({"parameters": 3}, "expected an object"),
        ({"inputs": []}, "got none for"),
        ({"inputs": [{"name": "\ud800" * 10_000}]}, "expected names of"),
    ],
)
def test_requests_that_the_model_has_no_answer_to_are_refused(other: dict[str, Any], reason: str) -> None:
    with pytest.raises(ModelError, match=reason) as caught:
        _asked({"data": [1.0, 2.0]}, **other)
    assert len(str(caught.value)) < 300


def test_answers_are_json() -> None:
    request = _asked({"data": [1.0, 2.0]}, id="a\ud800")
    results = {"y": np.array([[1.5, np.nan, np.inf]], np.float32), "z": np.array([b"a", "\xe9".encode()], np.object_)}
    body, headers = answer_of("m", request, results)
    assert json.loads(body) == {
        "model_name": "m",
        "id": "a\ud800",
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [1, 3], "data": [1.5, None, None]},
            {"name": "z", "datatype": "BYTES", "shape": [2], "data": ["a", "\xe9"]},
        ],
    }
    assert headers == {"Content-Type": "application/json"}
    with pytest.raises(ModelError, match="'z' is not UTF-8"):
        answer_of("m", request, results | {"z": np.array([b"\xff"], np.object_)})


@pytest.mark.parametrize("datatype", ["FP16", "FP32", "FP64", "INT8", "INT64", "UINT16", "BOOL"])
def test_binary_tensors_keep_their_bits(datatype: str) -> None:
    dtype = np.dtype({"F": "<f", "I": "<i", "U": "<u", "B": "?"}[datatype[0]] + _itemsize(datatype))
    values = np.frombuffer(np.random.default_rng(2).bytes(6 * dtype.itemsize), dtype)
    if datatype == "BOOL":
        values = np.array([True, False, True, True, False, False])
    told = {"shape": [2, 3], "datatype": datatype, "parameters": {"binary_data_size": values.nbytes}}
    x = _asked(told, values.tobytes()).batch["x"]
    assert x.shape == (2, 3) and x.tobytes() == values.tobytes()
    body, headers = answer_of("m", Request({}, [Wanted("y", True), Wanted("z", False)], None), {"y": x, "z": x[0]})
    length = int(headers["Inference-Header-Content-Length"])
    y, z = json.loads(body[:length])["outputs"]
    assert body[length:] == values.tobytes()
    assert y["parameters"] == {"binary_data_size": values.nbytes} and "data" not in y and len(z["data"]) == 3


def _itemsize(datatype: str) -> str:
    bits = datatype.lstrip("FPUINTBOL")
    return str(int(bits) // 8) if bits else ""


def test_binary_strings_have_lengths() -> None:
    strings = b"\x01\x00\x00\x00a\x00\x00\x00\x00\x02\x00\x00\x00\xff\xfe"
    told = {"shape": [3], "datatype": "BYTES", "parameters": {"binary_data_size": len(strings)}}
    request = _asked(told, strings, parameters={"binary_data_output": True})
    assert request.batch["x"].tolist() == [b"a", b"", b"\xff\xfe"]
    assert request.outputs == [Wanted("y", True), Wanted("z", True)]
    body, headers = answer_of("m", request, {"y": request.batch["x"], "z": np.array([], np.object_)})
    assert body[int(headers["Inference-Header-Content-Length"]) :] == strings


@pytest.mark.parametrize(
    ("tensor", "after", "reason"),
    [
        ({"parameters": {"binary_data_size": 8}}, b"1234", "up to the 4 bytes that follow"),
        ({"parameters": {"binary_data_size": -1}}, b"1234", "up to the 4 bytes"),
        ({"parameters": {"binary_data_size": True}}, b"1234", "up to the 4 bytes"),
        ({"parameters": {"binary_data_size": 4}}, b"1234", "expected 8 bytes for 2 of FP32, got 4"),
        ({"parameters": {"binary_data_size": 8}}, b"123456789", "expected no bytes after the inputs, got 1"),
        ({"parameters": {"binary_data_size": 2}, "datatype": "BOOL"}, b"\x00\x02", "expected bytes 0 and 1"),
        ({"parameters": {"binary_data_size": 4}, "datatype": "BYTES"}, bytes(4), "expected 2 strings"),
        (
            {"parameters": {"binary_data_size": 8}, "datatype": "BYTES"},
            struct.pack("<II", 0, 2**32 - 1),
            "expected 2 strings",
        ),
        ({"parameters": {"shared_memory_region": "r"}}, b"", "expected data or a binary_data_size"),
    ],
)
def test_binary_tensors_that_do_not_fit_are_refused(tensor: dict[str, Any], after: bytes, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        _asked(tensor, after)


def test_binary_tensors_without_their_header_are_told_what_lacks() -> None:
    with pytest.raises(ModelError, match="binary tensors need the header Inference-Header-Content-Length"):
        request_of(b'{"inputs": []}\xff\xfe', None, Interface(["x"], ["y"]))
    for wrong in ("-1", "x", "99999999", "9" * 5000):
        with pytest.raises(ModelError, match="expected at most the body's 2 bytes"):
            request_of(b"{}", wrong, Interface(["x"], ["y"]))


def test_bodies_are_bounded_by_what_the_model_takes() -> None:
    f32, text = np.dtype(np.float32), np.dtype(np.object_)
    assert body_limit({"x": ((-1, 8, 8, 3), f32)}, 32) == (1 << 20) + 32 * 192 * 32
    assert body_limit({"x": ((1, 1024, 1024, 3), f32)}, 32) == (1 << 20) + (3 << 20) * 32
    assert body_limit({"x": ((-1, 8), f32), "t": ((-1,), text)}, 32) == 16 << 20
    assert body_limit({"x": ((-1, -1, -1, 3), f32)}, 32) == 16 << 20
