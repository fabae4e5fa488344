"""Outputs of LiteRT's reference kernels for a core set of cases, stored beside this file.

``tools/goldens.py`` writes them. Each carries a digest of its case's values, constants and options: if the case
has changed since, the golden is ignored.
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
    """Outputs by check. digests: of their models and inputs. version: LiteRT's."""

    version: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Sequence[Array]] = field(default_factory=dict)

    def of(self, check: str, model: Model, steps: Sequence[Step]) -> list[list[Array]] | None:
        """Return LiteRT's outputs for a check with one step, or None."""
        if check not in self.digests or self.digests[check] != digest(model, steps):
            return None
        return [list(self.outputs[check])]


def digest(model: Model, steps: Sequence[Step]) -> str:
    """Return a digest of a model with one subgraph and its inputs."""
    (graph,) = model.subgraphs
    hashed = hashlib.sha256()
    for node in graph.nodes:
        hashed.update(f"{node.op.name} {node.version} {node.options}".encode())
    for spec in graph.tensors:
        by = spec.quantization
        scales = "" if by is None else f"{by.scale.tolist()} {by.zero_point.tolist()} {by.quantized_dimension}"
        hashed.update(f"{spec.type.name} {spec.shape} {scales}".encode())
    for value in (*(s.data for s in graph.tensors if s.data is not None), *(x for s in steps for x in s.feeds)):
        hashed.update(repr(value.tolist()).encode() if value.dtype.kind == "O" else value.tobytes())
    return hashed.hexdigest()[:16]


@cache
def load() -> Goldens:
    """Load the package's goldens; empty if it has none."""
    file = files("litecl.verify") / FILE
    return read(file.read_bytes()) if file.is_file() else Goldens()


def read(content: bytes) -> Goldens:
    """Read goldens as ``tools.goldens`` writes them."""
    with np.load(io.BytesIO(content)) as arrays:
        head = json.loads(str(arrays["head"]))
        outputs = {
            name: [arrays[f"{number}.{i}"] for i in range(count)]
            for number, (name, _, count) in enumerate(head["checks"])
        }
    return Goldens(head["litert"], {name: by for name, by, _ in head["checks"]}, outputs)
