"""Adds a signature to a language model that runs a whole generation."""

from pathlib import Path

from litecl.generate import parts
from litecl.generate.model import length_of
from litecl.generate.signatures import steps
from litecl.generate.whole import Lookup, looped
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Model


def with_generation(path: Path, most: int) -> Model:
    """Return the model of a bundle or file with an additional signature "generate"; see ``whole.looped``.

    most: tokens per generation, each the most likely one. An embedder's table becomes part of the loop. Raises
    ModelError for a file that is not a language model, or that lacks the embedder it needs.
    """
    bundle = parts.read(path)
    interpreter = Interpreter(read(bundle.model.content, bundle.model.find))
    _, decode = steps(interpreter)
    slots = length_of(decode, bundle.metadata.context_length, interpreter.model)
    tables = {}
    for entry in decode.inputs:
        if entry.name in bundle.embedders:
            embedder = Interpreter(read(bundle.embedders[entry.name].content, bundle.embedders[entry.name].find))
            tables[entry.name] = Lookup.of(embedder)
    if not 1 <= most <= slots:
        raise ModelError(f"expected from 1 to {slots} tokens, which the caches hold, got {most}")
    sized = decode.with_sizes(1, slots)
    return looped(interpreter.model, sized, tables, most, bundle.metadata.sliding_window, keep=True)
