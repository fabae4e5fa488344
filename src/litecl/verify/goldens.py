"""Outputs that LiteRT's reference kernels gave for a core set of cases, kept next to this file.

``tests/tools/goldens.py`` writes them. Each belongs to the values, constants and options of its case, by their
digest: one whose case has changed since counts as none.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

import numpy as np

from litecl.interpreter.graph import Array, Model
from litecl.verify.check import Step

FILE = "goldens.npz"


@dataclass(frozen=True, eq=False)
class Goldens:
    """Outputs by check, with the digest of what was fed. version: LiteRT's."""

    version: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Sequence[Array]] = field(default_factory=dict)

    def of(self, check: str, model: Model, steps: Sequence[Step]) -> list[list[Array]] | None:
        """Return LiteRT's outputs of a check of one step, or None."""
        if check not in self.digests or self.digests[check] != digest(model, steps):
            return None
        return [list(self.outputs[check])]


def digest(model: Model, steps: Sequence[Step]) -> str:
    """Return what tells a model of one subgraph, and what it is fed, from others."""
    (graph,) = model.subgraphs
    found = hashlib.sha256()
    for node in graph.nodes:
        found.update(f"{node.op.name} {node.version} {node.options}".encode())
    for spec in graph.tensors:
        by = spec.quantization
        scales = "" if by is None else f"{by.scale.tolist()} {by.zero_point.tolist()} {by.quantized_dimension}"
        found.update(f"{spec.type.name} {spec.shape} {scales}".encode())
    for value in (*(s.data for s in graph.tensors if s.data is not None), *(x for s in steps for x in s.feeds)):
        found.update(repr(value.tolist()).encode() if value.dtype.kind == "O" else value.tobytes())
    return found.hexdigest()[:16]


@cache
def load() -> Goldens:
    """Return those of the package, none where it has none."""
    file = files("litecl.verify") / FILE
    return read(file.read_bytes()) if file.is_file() else Goldens()


def read(content: bytes) -> Goldens:
    """Return what ``tools.goldens`` packed."""
    with np.load(io.BytesIO(content)) as arrays:
        head = json.loads(str(arrays["head"]))
        outputs = {
            name: [arrays[f"{number}.{i}"] for i in range(count)]
            for number, (name, _, count) in enumerate(head["checks"])
        }
    return Goldens(head["litert"], {name: by for name, by, _ in head["checks"]}, outputs)
