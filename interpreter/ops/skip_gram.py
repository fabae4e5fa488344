"""SKIP_GRAM: the n-grams of a sentence's words, with some words in between skipped."""

from collections.abc import Iterator

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.kit.own import texts
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType

_MOST_GRAMS = 1 << 20


@dataclass(frozen=True)
class SkipGramOptions:
    ngram_size: int = 0
    max_skip_size: int = 0
    include_all_ngrams: bool = False


def _infer(options: SkipGramOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, (TensorType.STRING,))
    return [TensorSpec(TensorType.STRING, None)]


def _grams(options: SkipGramOptions, words: list[bytes], start: int, size: int) -> Iterator[tuple[bytes, ...]]:
    """Yield the grams of at most ``size`` words that begin with word ``start``, longer ones first."""
    if size > 1:
        for following in range(start + 1, min(start + options.max_skip_size + 2, len(words))):
            for rest in _grams(options, words, following, size - 1):
                yield (words[start], *rest)
    if size == 1 or options.include_all_ngrams:
        yield (words[start],)


def _run(options: SkipGramOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    words = bytes(x.reshape(-1)[0]).split() if x.size else []
    grams: list[bytes] = []
    if len(words) >= options.ngram_size >= 1:
        for start in range(len(words)):
            limits.tick()
            grams += [b" ".join(gram) for gram in _grams(options, words, start, options.ngram_size)]
            if len(grams) > _MOST_GRAMS:
                raise ModelError(f"more than {_MOST_GRAMS} grams")
    return [texts(grams)]


SKIP_GRAM = Op("SKIP_GRAM", options=SkipGramOptions, infer=_infer, run=_run)
