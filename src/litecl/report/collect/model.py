"""Collects a model's facts from its file."""

import hashlib
from collections.abc import Mapping
from typing import Any

from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model
from litecl.perf.summary import summarize
from litecl.report.facts import ModelFacts, Signature, Tensor


def model_of(name: str, content: bytes, model: Model, values: str) -> ModelFacts:
    """Return a model's facts. values: describes how its inputs were chosen."""
    interpreter = Interpreter(model)
    summary = summarize(model)
    return ModelFacts(
        name=name,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        constant_bytes=summary.constant_bytes,
        description=summary.description,
        subgraphs=len(model.subgraphs),
        nodes=sum(len(graph.nodes) for graph in model.subgraphs),
        operators=summary.operators,
        signatures=tuple(Signature(s.key, s.inputs, s.outputs) for s in summary.signatures),
        inputs=tuple(map(_tensor, interpreter.get_input_details())),
        outputs=tuple(map(_tensor, interpreter.get_output_details())),
        values=values,
    )


def _tensor(detail: Mapping[str, Any]) -> Tensor:
    shape = tuple(int(n) for n in detail["shape_signature"])
    return Tensor(detail["name"], detail["dtype"].__name__, shape, 0, False, detail["index"])
