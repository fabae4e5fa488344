"""One client of `litecl serve` does not hurt the others, whatever it sends, holds back or leaves unread."""

import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl import Predictor, sample
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import WHILE, WhileOptions
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.unary import TANH
from support.build import Graph, model
from support.served import Server, started

connections = pytest.importorskip("litecl.serve.connections", reason="litecl[serve] is not installed")

_PATH = "/v2/models/digits/infer"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.write(tmp_path_factory.mktemp("sample")).model


@pytest.fixture(scope="module")
def server(digits: Path) -> Iterator[Server]:
    with started(digits, "--cpu", "--name", "digits", "--client-s", "1", "--connections", "40") as server:
        yield server
        server.process.send_signal(signal.SIGTERM)
        _, error = server.process.communicate(timeout=60)
        assert error == ""  # no client has made it log anything, least of all what it had sent


def _connected(server: Server) -> socket.socket:
    address = server.client.address.removeprefix("http://").split(":")
    return socket.create_connection((address[0], int(address[1])), timeout=30)


def _head(length: int, *headers: str) -> bytes:
    return "\r\n".join([f"POST {_PATH} HTTP/1.1", "Host: a", f"Content-Length: {length}", *headers, "", ""]).encode()


def _all(connection: socket.socket) -> bytes:
    """Return everything that a server sends until it closes a connection."""
    read = bytearray()
    try:
        while part := connection.recv(1 << 16):
            read += part
    except ConnectionResetError:
        pass
    return bytes(read)


def _lives(server: Server) -> bool:
    return bool(json.loads(server.client.get("/v2/health/live"))["live"])


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b""),
        (b"POST " + _PATH.encode(), b""),
        (_head(100), b"HTTP/1.1 408"),
        (_head(100) + b'{"inputs"', b"HTTP/1.1 408"),
        (_head(20 << 20) + b"[", b"HTTP/1.1 413"),
        (b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 200_000, b"HTTP/1.1 400"),
        (b"GET /" + b"y" * 200_000 + b" HTTP/1.1\r\n", b"HTTP/1.1 400"),
    ],
    ids=["nothing", "line", "headers", "body", "long", "header", "address"],
)
def test_half_a_request_ends(server: Server, sent: bytes, status: bytes) -> None:
    with _connected(server) as connection:
        connection.sendall(sent)
        assert _all(connection).startswith(status)
    assert _lives(server)


def test_idle_connections_make_way(server: Server) -> None:
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(_connected(server)).sendall(_head(100) + b"{")
            if _ % 50 == 0:
                assert _lives(server)
        assert _lives(server)


def test_a_connection_serves_many_requests_for_longer_than_one_may_take(server: Server) -> None:
    connection = HTTPConnection(server.client.address.removeprefix("http://"), timeout=30)
    connection.connect()
    first = connection.sock
    for _ in range(25):
        connection.request("GET", "/v2/health/live")
        assert json.load(connection.getresponse()) == {"live": True}
        time.sleep(0.2)
    assert connection.sock is first


def _refused(server: Server, body: bytes) -> tuple[int, str]:
    status, told = server.client.post(body)
    assert len(json.dumps(told)) < 500
    return status, told["error"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            b'{"inputs": [], "outputs": [' + b'{"name": "probabilities"},' * 20_000 + b'{"name": "probabilities"}]}',
            "once",
        ),
        (b'{"inputs": [' + b'{"name": "image"},' * 20_000 + b"{}]}", "once"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 100_000, "nested deeper"),
        (b'{"inputs": [{"shape": [' + b"9" * 100_000 + b"]}]}", "4300 digits"),
        (b'{"id": "' + b"7" * 500_000 + b'"}', "id: expected"),
        (b"\x80" * 100_000, "expected JSON in UTF-8; binary tensors need the header"),
    ],
    ids=["outputs", "inputs", "arrays", "objects", "digits", "id", "bytes"],
)
def test_a_body_that_is_too_much_is_refused_in_a_line(server: Server, body: bytes, reason: str) -> None:
    status, error = _refused(server, body)
    assert status == 400 and reason in error
    assert _lives(server)


def test_a_long_body_is_refused_before_it_is_read(server: Server) -> None:
    status, error = _refused(server, b" " * (4 << 20))
    assert status == 413 and "--most-bytes" in error
    with _connected(server) as connection:  # no length is told ahead
        connection.sendall(_head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            for _ in range(100):
                connection.sendall(chunk)
        except ConnectionError:
            pass
        assert _all(connection).startswith(b"HTTP/1.1 413")


def _wide() -> Model:
    """Repeats its input a hundred thousand times."""
    g = Graph()
    x = g.op(TANH, [g.input((1, 8))], NoOptions())
    return model(g.build(g.op(TILE, [x, g.const(np.int32([1, 100_000]))], NoOptions())))


def _endless() -> Model:
    """Adds one to its input, many times more often than a test waits for."""
    g, goes_on, body = Graph(), Graph("goes_on"), Graph("body")
    x = g.input((1,))
    count = goes_on.input((1,))
    body.input((1,))
    less = goes_on.op(LESS, [count, goes_on.const(np.float32([1e9]))], NoOptions())
    more = body.op(ADD, [body.inputs[0], body.const(np.float32([1e-3]))], AddOptions())
    (y,) = g.node(WHILE, [x], [g.tensors[x]], WhileOptions(1, 2))
    return model(g.build(y), goes_on.build(less), body.build(more))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_batch_does_not_hold_the_end(tmp_path: Path, number: signal.Signals) -> None:
    """No device can be interrupted, so the process ends."""
    file = tmp_path / "digits.tflite"
    file.write_bytes(write(_endless()))
    body = json.dumps({"inputs": [{"name": "main_in0", "shape": [1], "datatype": "FP32", "data": [0]}]}).encode()
    with started(file, "--cpu", "--grace-s", "1") as server, _connected(server) as connection:
        connection.sendall(_head(len(body)) + body)
        assert _lives(server)
        time.sleep(1)
        server.process.send_signal(number)
        _, error = server.process.communicate(timeout=30)
        assert b" 503 " in _all(connection).split(b"\r\n")[0]
    if number == signal.SIGINT:  # after another one, uvicorn sends it to the process again
        assert server.process.returncode == 1
        assert "ended with a batch under way, 1 s after the signal" in error


def test_two_signals_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One arrives in the handler of the other: the application still learns of the end."""
    server, timers = connections.server(None, connections.Bounds()), list[threading.Timer]()

    def start(timer: threading.Timer) -> None:
        timers.append(timer)
        if len(timers) == 1:
            server.handle_exit(signal.SIGINT, None)

    monkeypatch.setattr(threading.Timer, "start", start)
    server.handle_exit(signal.SIGINT, None)
    assert (len(timers), server.should_exit, server.force_exit) == (2, True, False)


def test_an_answer_that_is_not_read_ends(tmp_path: Path) -> None:
    file = tmp_path / "digits.tflite"
    file.write_bytes(write(_wide()))
    tensor = {"name": Predictor(str(file), cpu=True).inputs.popitem()[0], "shape": [1, 8], "datatype": "FP32"}
    body = json.dumps({"inputs": [tensor | {"data": [0.123] * 8}]}).encode()
    with started(file, "--cpu", "--client-s", "1") as server, ExitStack() as stack:
        unread = [stack.enter_context(_connected(server)) for _ in range(2)]
        for connection in unread:
            connection.sendall(_head(len(body)) + body)
        while f'litecl_requests_total{{code="200"}} {len(unread)}' not in server.client.get("/metrics"):
            time.sleep(0.05)
        time.sleep(5)
        for connection in unread:  # the kernels have a part of it
            assert len(_all(connection)) < 16e6
        assert _lives(server)


@pytest.mark.parametrize("sent", [b"", _head(100) + b"{"], ids=["nothing", "half"])
def test_a_client_does_not_hold_the_end(digits: Path, sent: bytes) -> None:
    with started(digits, "--cpu", "--grace-s", "1") as server, _connected(server) as connection:
        connection.sendall(sent)
        assert _lives(server)  # so that it heeds signals
        server.process.send_signal(signal.SIGTERM)
        _, error = server.process.communicate(timeout=20)
    assert server.process.returncode == -signal.SIGTERM
    assert error == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(digits: Path, number: signal.Signals) -> None:
    options = "--cpu", "--name", "digits", "--grace-s", "600", "--client-s", "600"
    with started(digits, *options) as server, _connected(server) as connection:
        connection.sendall(_head(100) + b"{")
        assert _lives(server)  # so that it heeds signals
        server.process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(1)
        server.process.send_signal(number)
        assert server.process.wait(20) == -number


@pytest.mark.parametrize("name", ["what? ünï", "a/50%2F", "{name}#b"])
def test_the_address_that_is_told_leads_to_the_model(digits: Path, name: str) -> None:
    with started(digits, "--cpu", "--name", name) as server:
        path = server.told[-1].split("http://")[1].partition("/")[2].strip().split(";")[0]
        assert json.loads(server.client.get(f"/{path}"))["name"] == name
        assert json.loads(server.client.get(f"/{path}/ready"))["ready"]
        data: Any = np.zeros(192).tolist()
        tensor = {"name": "image", "shape": [1, 8, 8, 3], "datatype": "FP32", "data": data}
        status, told = server.client.post({"inputs": [tensor]}, f"/{path}/infer")
        assert (status, told["model_name"]) == (200, name)
