"""The models that ``python -m tools.gpu_page`` measures, and small ones of the same kinds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.unary import TANH
from litecl.perf.models import layers
from litecl.perf.models.build import Graph
from litecl.perf.models.build_control import FLOAT, INT, below, next_, plus, times, while_model
from support import networks

_BATCHES = (1, 16)


@dataclass(frozen=True)
class Subject:
    """A model to measure. make: its file for a batch. small: one of the kind that any device runs in no time."""

    name: str
    make: Callable[[int], bytes]
    small: Callable[[int], bytes]
    batches: Sequence[int] = _BATCHES


def loop(trips: int) -> bytes:
    """Return a loop of so many small iterations."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        scaled = plus(g, times(g, x[1], g.const(np.float32(1.01))), g.const(np.float32(0.1)))
        return [next_(g, x[0]), g.op(TANH, [scaled], NoOptions())]

    return write(while_model([((), INT), ((64,), FLOAT)], below(trips), body))


SUBJECTS = (
    Subject(
        "dense 1280 x 1000",
        lambda batch: layers.dense(1280, 1000, batch),
        lambda batch: layers.dense(64, 32, batch),
    ),
    Subject("LSTM 100 x 256", lambda batch: layers.lstm(100, 256, batch), lambda batch: layers.lstm(3, 16, batch)),
    Subject("loop of 1,000", lambda batch: loop(1_000), lambda batch: loop(10), (1,)),
    Subject("loop of 10,000", lambda batch: loop(10_000), lambda batch: loop(20), (1,)),
    Subject(
        "MobileNetV2",
        lambda batch: networks.mobilenet_v2(batch=batch),
        lambda batch: networks.mobilenet_v2(32, batch),
    ),
    Subject(
        "EfficientNetB0",
        lambda batch: networks.efficientnet_b0(batch=batch),
        lambda batch: networks.efficientnet_b0(32, batch),
    ),
    Subject(
        "BERT-base, 128 words",
        lambda batch: networks.bert(batch=batch),
        lambda batch: networks.bert(8, batch, 1, 32, 4),
    ),
    Subject("ResNet50", lambda batch: networks.resnet_50(batch=batch), lambda batch: networks.resnet_50(32, batch)),
)
