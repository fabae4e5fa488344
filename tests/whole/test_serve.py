"""`litecl serve` answers as LiteRT does, alone and in shared batches, refuses wrong requests, and reports its work."""

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from urllib.error import HTTPError

import numpy as np
import pytest

from litecl import Predictor, sample
from litecl.cli import main
from litecl.cli.commands.serve import _listening
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array
from support import oracle
from support.served import Client, serving_here, started

connections = pytest.importorskip("litecl.serve.connections", reason="litecl[serve] is not installed")
app = pytest.importorskip("litecl.serve.app", reason="litecl[serve] is not installed")
bodies = pytest.importorskip("litecl.serve.bodies", reason="litecl[serve] is not installed")


def infer(images: Array, **other: Any) -> dict[str, Any]:
    tensor = {"name": "image", "shape": [*images.shape], "datatype": "FP32", "data": images.reshape(-1).tolist()}
    return {"inputs": [tensor | other]}


def results(answer: tuple[int, Any]) -> Array:
    status, told = answer
    assert status == 200, told
    (output,) = told["outputs"]
    return np.array(output["data"], np.float32).reshape(output["shape"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> sample.Sample:
    return sample.write(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def serving(made: sample.Sample) -> Iterator[Callable[..., Client]]:
    """Start servers of the sample, each with its own options. instead: runs in place of the predictor."""
    with serving_here() as serve:

        def start(instead: Callable[[Predictor], Any] = lambda predictor: predictor, **options: Any) -> Client:
            return serve(app.app(instead(Predictor(made.model)), app.Serving("digits", **options))[0])

        yield start


def test_it_answers_as_litert_does(made: sample.Sample, serving: Callable[..., Client]) -> None:
    images = np.load(made.images)["image"][:5]
    wanted = [oracle.run(made.model.read_bytes(), [image[None]])[0] for image in images]
    client = serving()
    np.testing.assert_allclose(results(client.post(infer(images))), np.concatenate(wanted), atol=1e-5)
    status, told = client.post(infer(images[:1]) | {"id": "7", "outputs": [{"name": "probabilities"}]})
    assert (status, told["id"], told["model_name"]) == (200, "7", "digits")
    assert told["outputs"][0]["datatype"] == "FP32" and told["outputs"][0]["shape"] == [1, 10]


def test_it_describes_itself(serving: Callable[..., Client]) -> None:
    client = serving()
    assert [json.loads(client.get(f"/v2/health/{kind}")) for kind in ("live", "ready")] == [
        {"live": True},
        {"ready": True},
    ]
    assert json.loads(client.get("/v2"))["name"] == "litecl"
    assert json.loads(client.get("/v2/models/digits/ready"))["ready"]
    told = json.loads(client.get("/v2/models/digits"))
    assert told["inputs"] == [{"name": "image", "datatype": "FP32", "shape": [-1, 8, 8, 3]}]
    assert [each["name"] for each in told["outputs"]] == ["probabilities"]
    (post,) = json.loads(client.get("/openapi.json"))["paths"]["/v2/models/{name}/infer"].values()
    assert post["requestBody"]["content"]["application/json"]["schema"]["required"] == ["inputs"]


class Slow:
    """A predictor that waits for ``go`` before each batch."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor, self.began, self.go = predictor, threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._predictor, name)

    def __call__(self, batch: Any) -> Any:
        self.began.set()
        assert self.go.wait(20)
        return self._predictor(batch)


def test_requests_that_wait_share_a_batch(made: sample.Sample, serving: Callable[..., Client]) -> None:
    slow: list[Slow] = []
    client = serving(lambda predictor: slow.append(Slow(predictor)) or slow[0], most_rows=6)
    images = np.load(made.images)["image"][:9]
    with ThreadPoolExecutor(9) as threads:
        first = threads.submit(client.post, infer(images[:1]))
        assert slow[0].began.wait(20)
        others = [threads.submit(client.post, infer(image[None])) for image in images[1:]]
        while client.counted("litecl_waiting_requests") < 8:
            time.sleep(0.01)
        slow[0].go.set()
        got = np.concatenate([results(each.result()) for each in (first, *others)])
    np.testing.assert_allclose(got, Predictor(made.model, cpu=True)(images)["probabilities"], atol=1e-5)
    assert client.counted("litecl_batch_rows_count") == 3  # of 1, 6 and 2 rows
    assert client.counted("litecl_batch_rows_sum") == 9
    assert client.counted('litecl_batch_rows_bucket{le="+Inf"}') == client.counted("litecl_batch_rows_count")


def test_what_is_wrong_is_refused_with_its_reason(made: sample.Sample, serving: Callable[..., Client]) -> None:
    client = serving(most_bytes=100_000)
    images = np.load(made.images)["image"][:1]
    wrong = {
        "expected names of ['image'], got 'picture'": infer(images, name="picture"),
        "expected float32, got int8": infer(images.astype(np.int8), datatype="INT8"),
        "expected a datatype of": infer(images, datatype="FLOAT"),
        "got 3 elements": infer(images, data=[1.0, 2.0, 3.0]),
        "expected [rows, ": infer(images, shape=[1, 8, 24]),
        "expected FP32": infer(images, data=["a"] * images.size),
        "INT8 holds -128 to 127": infer(images, datatype="INT8", data=[300] * images.size),
        "expected INT8": infer(images, datatype="INT8", data=[0.5] * images.size),
        "expected each name once": {"inputs": infer(images)["inputs"] * 2},
        "expected names of": infer(images) | {"outputs": [{"name": "scores"}]},
    }
    for reason, document in wrong.items():
        status, told = client.post(document)
        assert status == 400 and reason in told["error"], (reason, status, told)
    for body in ({"inputs": 3}, b"{", b"", b"[]"):
        assert client.post(body)[0] == 400
    assert client.post(infer(images), "/v2/models/other/infer")[0] == 404
    with pytest.raises(HTTPError, match="405"):
        client.get("/v2/models/digits/infer")
    status, told = client.post(infer(np.zeros((99, 8, 8, 3), np.float32) + 0.123456789))
    assert status == 413 and "at most 100000 bytes" in told["error"]
    assert results(client.post(infer(images))).shape == (1, 10)
    assert client.counted('litecl_requests_total{code="400"}') == len(wrong) + 4


def test_too_many_requests_are_told_to_come_again(made: sample.Sample, serving: Callable[..., Client]) -> None:
    slow: list[Slow] = []
    client = serving(lambda predictor: slow.append(Slow(predictor)) or slow[0], most_waiting=2, together=False)
    images = np.load(made.images)["image"][:1]
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(client.post, infer(images)) for _ in range(8)]
        while client.counted("litecl_waiting_requests") < 2:
            time.sleep(0.01)
        status, told = client.post(infer(images))
        slow[0].go.set()
        statuses = sorted(each.result()[0] for each in asked)
    assert status == 503 and "2 requests wait already" in told["error"]
    assert statuses[0] == 200 and {*statuses} <= {200, 503}


def test_an_answer_that_takes_too_long_is_given_up(made: sample.Sample, serving: Callable[..., Client]) -> None:
    slow: list[Slow] = []
    client = serving(lambda predictor: slow.append(Slow(predictor)) or slow[0], answer_s=0.5, together=False)
    images = np.load(made.images)["image"][:1]
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(client.post, infer(images)) for _ in range(3)]
        answers = [each.result() for each in asked]
    assert [status for status, _ in answers] == [504] * 3
    assert "within 0.5 s" in answers[0][1]["error"]
    slow[0].go.set()
    assert results(client.post(infer(images))).shape == (1, 10)
    assert client.counted("litecl_batch_rows_count") == 2  # those that waited have not been run


class Broken(Slow):
    """Fails in a way that nobody foresaw."""

    def __call__(self, batch: Any) -> Any:
        raise ValueError(f"secret {batch}")


def test_other_faults_tell_nothing_of_the_request(
    made: sample.Sample, serving: Callable[..., Client], capsys: pytest.CaptureFixture[str]
) -> None:
    client = serving(Broken)
    status, told = client.post(infer(np.load(made.images)["image"][:1]))
    assert status == 500 and told == {"error": "ValueError; the server's log has its place"}
    logged = capsys.readouterr().err
    assert "in __call__" in logged and "array(" not in logged


def test_bodies_are_held_up_to_a_bound(
    made: sample.Sample, serving: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_HELD_BYTES", 0)
    client = serving(most_bytes=20_000)
    images = np.load(made.images)["image"][:1]
    host, port = client.address.removeprefix("http://").split(":")
    head = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(4):
            half = stack.enter_context(socket.create_connection((host, int(port))))
            half.sendall(head + b" " * 19_900)
        while (answer := client.post(infer(images)))[0] == 200:
            time.sleep(0.05)
        assert answer[0] == 503 and "80000 bytes are under way" in answer[1]["error"]
    while client.post(infer(images))[0] == 503:
        time.sleep(0.05)
    assert results(client.post(infer(images))).shape == (1, 10)


class Fussy(Slow):
    """Fails for a batch in which a number is negative."""

    def __call__(self, batch: Any) -> Any:
        results = super().__call__(batch)
        if (batch["image"] < 0).any():
            raise DelegateError("negative")
        return results


def test_one_request_of_a_batch_fails_alone(made: sample.Sample, serving: Callable[..., Client]) -> None:
    fussy: list[Fussy] = []
    client = serving(lambda predictor: fussy.append(Fussy(predictor)) or fussy[0])
    images = np.load(made.images)["image"][:6].copy()
    images[4] = -1
    with ThreadPoolExecutor(6) as threads:
        asked = [threads.submit(client.post, infer(images[:1]))]
        assert fussy[0].began.wait(20)
        asked += [threads.submit(client.post, infer(image[None])) for image in images[1:]]
        while client.counted("litecl_waiting_requests") < 5:
            time.sleep(0.01)
        fussy[0].go.set()
        statuses = [each.result()[0] for each in asked]
    assert statuses == [200, 200, 200, 200, 500, 200]
    assert asked[4].result()[1]["error"] == "DelegateError: negative"


def test_the_command_serves_until_it_is_interrupted(made: sample.Sample) -> None:
    with started(made.model, "--name", "digits", "--json") as server:
        assert results(server.client.post(infer(np.load(made.image)))).argmax() == made.shown
        printed = server.ended()
    assert server.process.returncode == 0 and json.loads(printed)["requests"] == 1


def test_a_port_that_is_taken_is_an_error(made: sample.Sample, capsys: pytest.CaptureFixture[str]) -> None:
    with _listening("127.0.0.1", 0) as listener:
        assert main(["serve", str(made.model), "--cpu", "--port", str(listener.getsockname()[1])]) == 1
    assert "OSError" in capsys.readouterr().err


def test_without_its_packages_it_says_what_to_install(
    made: sample.Sample, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "litecl.serve.connections")
    assert main(["serve", str(made.model), "--cpu"]) == 1
    assert "pip install 'litecl[serve]'" in capsys.readouterr().err
