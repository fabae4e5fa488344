"""Runs JavaScript in headless Chromium, in a page that fetches modules from this process and sends back results."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")
_OPTIONS = "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run"
# Every task has a page of its own: memory of the one before is free.
_PAGE = b"""<!doctype html><script type="module">
const task = await (await fetch("/task", { method: "POST" })).text();
let done;
try {
    const { default: main } = await import(task);
    done = { result: await main() };
} catch (error) {
    done = { error: String(error) };
}
await fetch("/done", { method: "POST", body: JSON.stringify(done) });
location.reload();
</script>
"""


class Browser:
    """Chromium with an empty profile, while a context lasts. under: a command that starts another, such as taskset."""

    def __init__(self, under: Sequence[str] = ()) -> None:
        self._under = under
        self._tasks: Queue[str] = Queue()
        self._done: Queue[dict[str, Any]] = Queue()
        self._folders: list[Path] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def address(self) -> str:
        """The address of its server."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def run(self, folder: Path, module: str, timeout: float = 120) -> Any:
        """Return the result of a module's default function. folder: files served beside it.

        Raises RuntimeError for an error in the module, and TimeoutError, after which another browser is started.
        """
        self._folders.append(folder)
        self._tasks.put(f"/{len(self._folders) - 1}/{module}")
        try:
            done = self._done.get(timeout=timeout)
        except Empty:
            self._stop()
            self._start()
            raise TimeoutError(f"{module}: no answer in {timeout} s") from None
        if "error" in done:
            raise RuntimeError(done["error"])
        return done["result"]

    def __enter__(self) -> "Browser":
        Thread(target=self._server.serve_forever, daemon=True).start()
        self._start()
        return self

    def __exit__(self, type_: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        self._stop()
        self._server.shutdown()
        self._server.server_close()

    def _start(self) -> None:
        self._tasks, self._done = Queue(), Queue()  # a request of an earlier process may still wait at the others
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = *self._under, str(CHROMIUM), *_OPTIONS, f"--user-data-dir={self._profile.name}", self.address
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._profile.cleanup()

    def _handler(self) -> type[SimpleHTTPRequestHandler]:
        browser = self

        class Handler(SimpleHTTPRequestHandler):
            extensions_map = SimpleHTTPRequestHandler.extensions_map | {
                ".mjs": "text/javascript",
                ".wasm": "application/wasm",
            }

            def do_GET(self) -> None:
                if self.path == "/":
                    self._answer(_PAGE, "text/html")
                else:
                    super().do_GET()

            def do_POST(self) -> None:
                if self.path == "/task":
                    self._answer(browser._tasks.get().encode(), "text/plain")
                else:
                    browser._done.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                    self._answer(b"", "text/plain")

            def translate_path(self, path: str) -> str:
                """Return the file of an address, /NUMBER/NAME."""
                number, _, name = path.lstrip("/").partition("/")
                return str(browser._folders[int(number)] / name) if number.isdigit() else "/nowhere"

            def log_message(self, *args: object) -> None:
                """Print nothing."""

            def end_headers(self) -> None:
                self.send_header("Cache-Control", "no-store")
                super().end_headers()

            def _answer(self, content: bytes, type_: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", type_)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        return Handler
