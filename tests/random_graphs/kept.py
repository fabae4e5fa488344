"""The state that a model under construction keeps from invoke to invoke."""

from dataclasses import dataclass, field

from litecl.interpreter.graph import Array, TensorSpec


@dataclass
class Kept:
    """The resource variables of a model: what they are, how they begin, and their values as the drawing goes on."""

    specs: dict[str, TensorSpec] = field(default_factory=dict)
    firsts: dict[str, Array] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)
