"""Clients of `litecl serve`, and servers in processes of their own."""

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litecl.cli.commands.serve import _listening


class Client:
    """Asks a server."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    def post(self, document: Any, path: str = "/v2/models/digits/infer") -> tuple[int, Any]:
        """Return the status and what the answer says."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        request = urllib.request.Request(self.address + path, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def counted(self, name: str) -> float:
        """Return a number of /metrics."""
        (found,) = re.findall(rf"^{re.escape(name)} (\S+)$", self.get("/metrics"), re.M)
        return float(found)


@dataclass
class Server:
    """A server in a process. told: the lines that it has written, the last of which is its address."""

    process: "subprocess.Popen[str]"
    told: list[str]
    client: Client

    def ended(self) -> str:
        """Interrupt it; return what it has printed."""
        self.process.send_signal(signal.SIGINT)
        printed, _ = self.process.communicate(timeout=30)
        return printed


@contextmanager
def serving_here() -> Iterator[Callable[[Any], Client]]:
    """Yield a function that starts a server of an application in a thread; at the end all are stopped."""
    from litecl.serve import connections

    servers: list[tuple[Any, threading.Thread]] = []

    def start(application: Any) -> Client:
        listener = _listening("127.0.0.1", 0)
        server = connections.server(application, connections.Bounds())
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        servers.append((server, thread))
        return Client(listener.getsockname()[1])

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join()


@contextmanager
def started(model: Path, *options: str) -> Iterator[Server]:
    """Start a server of a model, and end it."""
    words = [sys.executable, "-m", "litecl", "serve", str(model), "--port", "0", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = []
        for line in process.stderr:
            told.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/v(?:1|2/models/)", line):
                break
        assert found, told
        try:
            yield Server(process, told, Client(int(found[1])))
        finally:
            if process.poll() is None:
                process.kill()
