"""Runs a language model's signatures in another runtime, for comparison with litecl."""

from collections.abc import Mapping, Sequence
from typing import Any

from litecl.generate.runners import Caches
from litecl.generate.signatures import Step
from litecl.interpreter.delegation import Delegation
from litecl.interpreter.graph import Array
from litecl.perf.contenders import typed_errors
from litecl.perf.peers import PEERS


class PeerRunner:
    """Runs a file's signatures with a peer's signature runners; see ``Runner``. They copy inputs and outputs."""

    delegations: Sequence[Delegation] = ()

    def __init__(self, name: str, content: bytes, num_threads: int) -> None:
        self._name = name
        with typed_errors(name):
            peer: Any = PEERS[name].load(content, num_threads)
            self._runners = {key: peer.get_signature_runner(key) for key in peer.get_signature_list()}

    def caches(self, values: Mapping[str, Array]) -> Caches:
        """Return caches with the given values."""
        return Caches({name: value.copy() for name, value in values.items()})

    def values(self, caches: Caches) -> dict[str, Array]:
        """Return copies of the caches' values."""
        return {name: value.copy() for name, value in caches.items()}

    def run(self, step: Step, given: Mapping[str, Array], caches: Caches) -> dict[str, Array]:
        """Run a signature."""
        with typed_errors(self._name):
            results = self._runners[step.key](**given, **caches)
        caches.update({name: results[name] for name in caches})
        return {name: value for name, value in results.items() if name not in caches}

    def close(self) -> None:
        """Release the model."""
        self._runners = {}
