"""Reads input properties from TFLite Metadata: pixel normalization and sample rates.

https://github.com/google-ai-edge/mediapipe/blob/master/mediapipe/tasks/metadata/metadata_schema.fbs
"""

from functools import lru_cache
from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.flatbuffer import Record, decode
from litecl.interpreter.file.tables import schema
from litecl.interpreter.graph import Model

_BUFFER, _IDENTIFIER = "TFLITE_METADATA", b"M001"
_SCHEMA = schema(
    """
    ModelMetadata: _ _ _ subgraph_metadata:[SubGraphMetadata]
    SubGraphMetadata: _ _ input_tensor_metadata:[TensorMetadata]
    TensorMetadata: _ _ _ content:Content process_units:[ProcessUnit]
    Content: content_properties:ContentProperties
    ProcessUnit: options:ProcessUnitOptions
    NormalizationOptions: mean:[float] std:[float]
    AudioProperties: sample_rate:uint channels:uint
    """,
    """
    ContentProperties: NONE FeatureProperties ImageProperties BoundingBoxProperties AudioProperties
    ProcessUnitOptions: NONE NormalizationOptions ScoreCalibrationOptions ScoreThresholdingOptions BertTokenizerOptions
        SentencePieceTokenizerOptions RegexTokenizerOptions
    """,
)


@dataclass(frozen=True)
class Normalization:
    """Normalizes a pixel to (pixel - mean) / std, with a mean and std per channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


def normalization(model: Model, subgraph: int, tensor: int, channels: int) -> Normalization | None:
    """Return how to normalize an input's images, or None if the file doesn't say.

    Raises ModelError unless mean and std have one finite number, or one per channel, and for a std of 0.
    """
    for unit in _value(_input(model, subgraph, tensor), "process_units") or ():
        options = unit.options
        if options is not None and options.table == "NormalizationOptions":
            mean, std = (np.asarray([] if each is None else each, np.float64) for each in (options.mean, options.std))
            if not {mean.size, std.size} <= {1, channels}:
                raise _wrong(f"expected a mean and a std for 1 or {channels} channels, got {mean.size} and {std.size}")
            if not (np.isfinite(mean).all() and np.isfinite(std).all() and std.all()):
                raise _wrong(f"expected finite means, and stds other than 0, got {mean.tolist()} and {std.tolist()}")
            return Normalization(*(tuple(np.broadcast_to(each, channels).tolist()) for each in (mean, std)))
    return None


def sample_rate(model: Model, subgraph: int, tensor: int) -> int | None:
    """Return the sample rate that an input expects in Hz, or None if the file doesn't say."""
    properties = _value(_value(_input(model, subgraph, tensor), "content"), "content_properties")
    return int(properties.sample_rate) or None if properties and properties.table == "AudioProperties" else None


def _input(model: Model, subgraph: int, tensor: int) -> Record | None:
    """Return an input's metadata, which is listed in the order of the inputs."""
    content = model.metadata.get(_BUFFER)
    graphs = [] if content is None else _decoded(content).subgraph_metadata or []
    described = (graphs[subgraph].input_tensor_metadata or []) if subgraph < len(graphs) else []
    inputs = model.subgraphs[subgraph].inputs
    if described and len(described) != len(inputs):
        raise _wrong(f"expected {len(inputs)} inputs, got {len(described)}")
    return described[inputs.index(tensor)] if described else None


@lru_cache(maxsize=4)
def _decoded(content: bytes) -> Record:
    if content[4:8] != _IDENTIFIER:
        raise _wrong(f"expected the identifier {_IDENTIFIER!r}, got {content[4:8]!r}")
    try:
        return decode(memoryview(content), "ModelMetadata", _IDENTIFIER, _SCHEMA)
    except ModelError as error:
        raise _wrong(str(error)) from error


def _value(record: Record | None, field: str) -> Any:
    return None if record is None else getattr(record, field)


def _wrong(reason: str) -> ModelError:
    return ModelError(f"{_BUFFER}: {reason}; --mean and --std, or --rate, take its place")
