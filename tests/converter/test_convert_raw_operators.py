"""Raw operators that are compositions, or operators of litecl's own, one a model: each against TensorFlow.

``tools/raw_operators.py`` does the same for all, and counts.
"""

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from litecl.converter import Converter  # noqa: E402
from litecl.converter.importer.compositions import crops, forms, forms_of_random, sparse, windows  # noqa: E402
from litecl.converter.lower import own  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.ops import examples, stateless_random  # noqa: E402
from support.conversion import invoke  # noqa: E402
from support.raw_runs import ARGUMENTS, Verdict, run  # noqa: E402

_TABLES = (
    crops.COMPOSITIONS,
    forms.COMPOSITIONS,
    forms_of_random.COMPOSITIONS,
    sparse.COMPOSITIONS,
    windows.COMPOSITIONS,
    own.LOWERINGS,
)
_NAMES = sorted({name for table in _TABLES for name in table} & set(ARGUMENTS))
_OWN = (
    "litecl.BesselI0",
    "litecl.BesselI0e",
    "litecl.BesselI1",
    "litecl.BesselI1e",
    "litecl.BesselJ0",
    "litecl.BesselJ1",
    "litecl.BesselK0",
    "litecl.BesselK0e",
    "litecl.BesselK1",
    "litecl.BesselK1e",
    "litecl.Betainc",
    "litecl.CTCBeamSearchDecoder",
    "litecl.DecodeBase64",
    "litecl.DecodeRaw",
    "litecl.DecodeWav",
    "litecl.EncodeBase64",
    "litecl.EncodeWav",
    "litecl.Fingerprint",
    "litecl.Igamma",
    "litecl.Igammac",
    "litecl.Lu",
    "litecl.MatrixSolveLs",
    "litecl.MatrixSquareRoot",
    "litecl.ParseExample",
    "litecl.Polygamma",
    "litecl.Qr",
    "litecl.RandomGamma",
    "litecl.RandomPoisson",
    "litecl.ReduceJoin",
    "litecl.SelfAdjointEig",
    "litecl.ShardedFilename",
    "litecl.ShardedFilespec",
    "litecl.SparseCross",
    "litecl.SparseCrossHashed",
    "litecl.SparseCrossTexts",
    "litecl.StatelessIntegers",
    "litecl.StatelessKey",
    "litecl.StatelessMultinomial",
    "litecl.StatelessNormal",
    "litecl.StatelessTruncatedNormal",
    "litecl.StatelessUniform",
    "litecl.StringNGrams",
    "litecl.StringSplitAt",
    "litecl.StringToBucket",
    "litecl.Svd",
    "litecl.TridiagonalSolve",
    "litecl.UnicodeDecode",
    "litecl.UnicodeDecodeWithOffsets",
    "litecl.UnicodeEncode",
    "litecl.UnicodeTranscode",
    "litecl.UnsortedSegmentJoin",
    "litecl.Zeta",
)


def test_own_operators_are_all_tried() -> None:
    made = {*own.OPERATORS.values(), *own.DRAWS.values(), examples.PARSE_EXAMPLE}
    made |= {stateless_random.STATELESS_KEY, stateless_random.STATELESS_MULTINOMIAL}
    assert {op.name for op in made} == set(_OWN)
    assert set(own.LOWERINGS) - set(ARGUMENTS) == {"StatelessRandomGetAlg", "StatelessRandomGetKeyCounter"}


@pytest.mark.parametrize("name", _NAMES)
def test_operator(name: str) -> None:
    result = run(name)
    assert result.verdict is Verdict.EQUAL, f"{' '.join(result.operators)}: {result.why}"


class _Noise(tf.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = [keras.layers.Dropout(0.5, seed=4), keras.layers.GaussianNoise(0.5, seed=3)]

    @tf.function(input_signature=[tf.TensorSpec((2, 6))])  # type: ignore[untyped-decorator]
    def run(self, x: Any) -> Any:
        return [layer(x, training=True) for layer in self.layers]


def test_layers_that_draw_numbers_draw_those_of_tensorflow() -> None:
    """Their generators keep a seed in a variable, which every call moves on."""
    x, module = np.ones((2, 6), np.float32), _Noise()
    content = Converter.from_concrete_functions([module.run.get_concrete_function()], module).convert()
    interpreter = Interpreter(model_content=content)
    seen = set()
    for _ in range(3):
        for got, wanted in zip(invoke(interpreter, [x]), module.run(x), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
            seen.add(got.tobytes())
    assert len(seen) == 6
