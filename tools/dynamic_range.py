"""Measures how far models of dynamic range are from the same models with float weights.

    PYTHONPATH=tests python -m tools.dynamic_range MODEL.tflite...

prints the rows of the table in docs/measurements/quantized_models.md: the RMS error of all outputs on random inputs, of
LiteRT and of litecl, each with asymmetric activations (LiteRT's by XNNPACK) and with those of the reference kernels.
"""

import argparse
from pathlib import Path

from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from support.dynamic_range import error, feeds_of, on_xnnpack, with_float_weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    for path in parser.parse_args().models:
        model = path.read_bytes()
        runtimes = (
            on_xnnpack(model),
            Interpreter(model, delegates=[CLDelegate()]),
            LiteRT(model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF),
            Interpreter(model, delegates=[CLDelegate(dynamic_range="reference")]),
        )
        feeds, exact = feeds_of(model), Interpreter(with_float_weights(read(model)))
        cells = " | ".join(f"{error(runtime, exact, feeds):.2e}" for runtime in runtimes)
        print(f"| {path.stem} | {cells} |")


if __name__ == "__main__":
    main()
