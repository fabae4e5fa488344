"""Other runtimes that run a model on the same device, in turns with litecl, where they are installed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from litecl.interpreter.graph import Array
from litecl.perf.timing import Stats
from tools.gpu.onnx_peer import OnnxModel
from tools.gpu.torch_peer import TorchModel

MOST_DIFFERENCE = 1e-3  # relative to the largest output


class Peer(Protocol):
    """A model in another runtime. runs_on: "CUDA" or "CPU"."""

    @property
    def runs_on(self) -> str: ...

    def prepare(self, inputs: Sequence[Array]) -> None:
        """Upload the inputs."""

    def run(self) -> list[Array]:
        """Return the outputs on the host."""


@dataclass(frozen=True)
class PeerTime:
    """The least time of a runtime, and where it ran; problem: why there is none."""

    ms: float | None
    runs_on: str = ""
    problem: str = ""

    def __str__(self) -> str:
        return "" if self.ms is None else f"{self.ms:.3f}" + ("" if self.runs_on == "CUDA" else f" ({self.runs_on})")


class Guarded:
    """A runtime that is timed, and does nothing more once it has failed."""

    def __init__(self, peer: Peer) -> None:
        self._peer, self._problem = peer, ""

    def run(self) -> None:
        """Run the model, unless that has failed before."""
        if self._problem:
            return
        try:
            self._peer.run()
        except Exception as error:  # of another package, of any kind
            self._problem = told(error)

    def time(self, found: Stats) -> PeerTime:
        """Return its least time, of all that was timed, or why there is none."""
        return PeerTime(None if self._problem else found.min_ms, self._peer.runs_on, self._problem)


def told(error: Exception) -> str:
    """Return an error on one line."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


PEERS: Mapping[str, Callable[[bytes], Peer]] = {"PyTorch": TorchModel, "ONNX Runtime": OnnxModel}


def difference(got: Sequence[Array], expected: Sequence[Array]) -> float:
    """Return the largest difference of two runs' outputs, relative to the largest output; infinity where one is no
    number.
    """
    parts = [float(np.abs(a - b).max() / max(1e-30, np.abs(b).max())) for a, b in zip(got, expected, strict=True)]
    return max(part if np.isfinite(part) else float("inf") for part in parts)


def ready(
    content: bytes, inputs: Sequence[Array], expected: Sequence[Array]
) -> tuple[dict[str, Peer], dict[str, PeerTime]]:
    """Return the runtimes that compute what is expected, prepared for these inputs; and of all others why not."""
    peers: dict[str, Peer] = {}
    others: dict[str, PeerTime] = {}
    for name, make in PEERS.items():
        try:
            peer = make(content)
            peer.prepare(inputs)
            differs = difference(peer.run(), expected)
        except Exception as error:  # of another package, of any kind
            others[name] = PeerTime(None, problem=told(error))
        else:
            if differs <= MOST_DIFFERENCE:
                peers[name] = peer
            else:
                others[name] = PeerTime(None, peer.runs_on, f"its results differ by {differs:.1e}")
    return peers, others
