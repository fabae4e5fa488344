"""CTCBeamSearchDecoder, one of litecl's own operators: the likeliest texts of frames, over all alignments.

Graves, "Supervised sequence labelling with recurrent neural networks" (2012), section 7.5: a beam of prefixes, each
with the probability of its alignments that end in a blank and of the others. As in TensorFlow, the beam is narrowed
while it grows: a prefix that was pushed out, or never came in, adds nothing to its continuations.
"""

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.kit.own import Result, operator, sparse
from litecl.interpreter.schema import TensorType

_INT64, _FLOAT32 = TensorType.INT64, TensorType.FLOAT32
_NEVER = -math.inf
_Text = tuple[int, ...]


@dataclass(frozen=True)
class BeamOptions:
    """beam_width: the number of prefixes kept. top_paths: the number of texts returned."""

    beam_width: int = 100
    top_paths: int = 1
    merge_repeated: bool = True


@dataclass(frozen=True)
class _Chances:
    """Log probabilities of alignments that end in a blank, in the last class, and in either."""

    blank: float = _NEVER
    label: float = _NEVER
    total: float = _NEVER


@dataclass(eq=False)
class _Prefix:
    """A text and its chances, up to the previous frame and up to this one; ``longer`` are its continuations."""

    parent: "_Prefix | None" = None
    label: int = -1
    old: _Chances = _Chances()
    new: _Chances = _Chances()
    longer: dict[int, "_Prefix"] = field(default_factory=dict)

    def text(self) -> _Text:
        """Return its classes."""
        return () if self.parent is None else (*self.parent.text(), self.label)

    def before(self, label: int) -> float:
        """Return the chance of the prefix before another class: the same class again only follows a blank."""
        return self.old.blank if label == self.label else self.old.total


def _sum(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high if low == _NEVER else high + math.log1p(math.exp(low - high))


class _Beam:
    """The likeliest prefixes, up to a number of them."""

    def __init__(self, width: int) -> None:
        self._width, self._order = width, itertools.count()
        self._heap: list[tuple[float, int, _Prefix]] = []
        self._push(_Prefix(new=_Chances(0.0, _NEVER, 0.0)))

    def _push(self, prefix: _Prefix) -> None:
        heapq.heappush(self._heap, (prefix.new.total, -next(self._order), prefix))

    def best(self) -> list[_Prefix]:
        """Return all prefixes, the likeliest first."""
        return [prefix for _, _, prefix in sorted(self._heap, key=lambda item: item[:2], reverse=True)]

    def _admits(self, chance: float) -> bool:
        return chance > _NEVER and (len(self._heap) < self._width or chance > self._heap[0][0])

    def step(self, frame: Sequence[float]) -> None:
        """Take another frame of log probabilities, the last of which is the blank's."""
        branches = self.best()
        self._heap = []
        for prefix in branches:
            prefix.old = prefix.new
        for prefix in branches:
            prefix.new = self._continued(prefix, frame)
            self._push(prefix)
        for prefix in branches:
            if self._admits(prefix.old.total):
                self._grow(prefix, frame)

    def _continued(self, prefix: _Prefix, frame: Sequence[float]) -> _Chances:
        """Return the chances of the same text after a frame: its last class goes on, comes in, or is over."""
        label, parent = prefix.old.label, prefix.parent
        if parent is not None:
            if parent.new.total > _NEVER:
                label = _sum(label, parent.before(prefix.label))
            label += frame[prefix.label]
        blank = prefix.old.total + frame[-1]
        return _Chances(blank, label, _sum(blank, label))

    def _grow(self, prefix: _Prefix, frame: Sequence[float]) -> None:
        for label, score in enumerate(frame[:-1]):
            longer = prefix.longer.setdefault(label, _Prefix(prefix, label))
            if longer.new.total > _NEVER:
                continue
            chance = score + prefix.before(label)
            if not self._admits(chance):
                longer.old = longer.new = _Chances()
                continue
            if len(self._heap) == self._width:
                heapq.heappop(self._heap)[2].new = _Chances()
            longer.new = _Chances(_NEVER, chance, chance)
            self._push(longer)


def _merged(text: _Text) -> _Text:
    return tuple(label for k, label in enumerate(text) if k == 0 or label != text[k - 1])


def _decoded(options: BeamOptions, frames: Array) -> list[tuple[_Text, float]]:
    """Return the best texts and their log probabilities."""
    beam = _Beam(options.beam_width)
    wide = frames.astype(np.float64)
    wide = wide - wide.max(-1, keepdims=True)
    for frame in wide - np.log(np.exp(wide).sum(-1, keepdims=True)):
        beam.step(frame.tolist())
    best = beam.best()[: options.top_paths]
    if len(best) < options.top_paths:
        raise ModelError(f"expected {options.top_paths} texts, got {len(best)} of {len(frames)} frames")
    texts = [prefix.text() for prefix in best]
    scores = [prefix.new.total for prefix in best]
    return list(zip(map(_merged, texts) if options.merge_repeated else texts, scores, strict=True))


def _run(options: BeamOptions, logits: Array, lengths: Array) -> list[Array]:
    """Return each rank's texts as sparse tensors: indices, classes and shapes, then the scores [B, top_paths]."""
    rows = [_decoded(options, logits[:length, k]) for k, length in enumerate(lengths.tolist())]
    ranks = [sparse([row[rank][0] for row in rows]) for rank in range(options.top_paths)]
    scores = np.array([[score for _, score in row] for row in rows], logits.dtype)
    indices, shapes = [rank[0] for rank in ranks], [rank[2] for rank in ranks]
    classes = [np.array(labels, np.int64) for _, labels, _ in ranks]
    return [*indices, *classes, *shapes, scores.reshape(len(rows), options.top_paths)]


def _results(options: BeamOptions, inputs: list[TensorSpec]) -> list[Result]:
    logits, lengths = inputs
    require.types(logits, (_FLOAT32,))
    require.rank(logits, exactly=3)
    if not 1 <= options.top_paths <= options.beam_width:
        raise ValueError(f"{options.top_paths} texts of a beam of {options.beam_width}")
    ranks = range(options.top_paths)
    counts: list[Result] = [(_INT64, (2,)) for _ in ranks]
    return [
        *((_INT64, None) for _ in ranks),
        *((_INT64, None) for _ in ranks),
        *counts,
        (_FLOAT32, (lengths.static_shape[0], options.top_paths)),
    ]


CTC_BEAM_SEARCH_DECODER = operator("litecl.CTCBeamSearchDecoder", BeamOptions, _run, _results)
