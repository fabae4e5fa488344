"""The other runtimes that litecl can be measured against, by name: a module for each."""

from collections.abc import Sequence
from functools import partial

from litecl.interpreter.errors import MissingExtra
from litecl.perf.peers import litert, onnxruntime, openvino
from litecl.perf.peers.peer import Peer

PEERS: dict[str, Peer] = {
    litert.LITERT: Peer(litert.PACKAGES, litert.module, litert.load),
    litert.LITERT_REFERENCE: Peer(litert.PACKAGES, litert.module, partial(litert.load, resolver="BUILTIN_REF")),
    "openvino": Peer(openvino.PACKAGES, openvino.module, openvino.load),
    "onnxruntime": Peer(onnxruntime.PACKAGES, onnxruntime.module, onnxruntime.load, onnxruntime.converted),
}
ALL = "all"


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return peers' names once each; "all" stands for those installed, LiteRT with its default kernels.

    Raises MissingExtra for one that isn't installed, or if "all" finds none.
    """
    installed = [name for name, peer in PEERS.items() if peer.is_installed and name != litert.LITERT_REFERENCE]
    if ALL in names and not installed:
        raise MissingExtra(f"--against {ALL}: none is installed; for example: pip install ai-edge-litert openvino")
    peers = dict.fromkeys(one for name in names for one in (installed if name == ALL else [name]))
    for name in peers:
        PEERS[name].require(name)
    return tuple(peers)
