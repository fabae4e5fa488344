"""A custom operator with two outputs from your own function: in Python, then as an OpenCL kernel.

TensorFlow's guide on operation fusion marks such a function with ``tfl_fusable_op``; its other attributes become the
operator's options. The interpreter gets the function, and the delegate its kernel.

    python examples/custom_op.py
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.converter import Converter
from litecl.delegate import Call, CLDelegate, ClOp, Launch
from litecl.delegate.kit.claims import takes
from litecl.delegate.kit.schedule import elements
from litecl.interpreter import Interpreter
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType

IMPLEMENTS = (
    'name: "mine.butterfly" attr { key: "tfl_fusable_op" value { b: true } } attr { key: "alpha" value { f: 0.5 } }'
)


@tf.function(experimental_implements=IMPLEMENTS)
def butterfly(a: tf.Tensor, b: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The function that TensorFlow runs; the converter drops the body."""
    return a + 0.5 * b, a - 0.5 * b


# The interpreter's side: options, shapes, and the reference kernel.


@dataclass(frozen=True)
class ButterflyOptions:
    """The attributes of the function, by name."""

    alpha: float = 1.0


def _infer(options: ButterflyOptions, inputs: Specs) -> list[Any]:
    a, _ = inputs
    return [a, a]


def _run(options: ButterflyOptions, inputs: Inputs) -> list[np.ndarray]:
    a, b = inputs
    scaled = np.float32(options.alpha) * b
    return [a + scaled, a - scaled]


BUTTERFLY = Op("mine.butterfly", options=ButterflyOptions, infer=_infer, run=_run, custom=True)


# The device's side: the kernel file beside this one, and how it is launched.


def _lower(call: Call) -> list[Launch]:
    a, b = call.input(0), call.input(1)
    kernel = str(Path(__file__).resolve().with_suffix(""))
    share = elements(kernel, a.spec.size, call.target)
    return [share.launch("butterfly", (a, b, *call.outputs, *share.args, np.float32(call.options.alpha)), {})]


DEVICE_BUTTERFLY = ClOp(BUTTERFLY, claim=takes(TensorType.FLOAT32), lower=_lower)


def main() -> None:
    """Converts, runs in Python and on the device, and compares with TensorFlow."""
    spec = tf.TensorSpec((4, 256), tf.float32)
    function = tf.function(lambda a, b: butterfly(tf.tanh(a), b), input_signature=[spec, spec])
    converter = Converter.from_concrete_functions([function.get_concrete_function()])
    content = converter.convert()
    print(converter.report)

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((4, 256)).astype(np.float32) for _ in range(2))
    expected = [y.numpy() for y in function(a, b)]
    custom_ops = {"mine.butterfly": BUTTERFLY}
    for delegates in ([], [CLDelegate(custom_ops=[DEVICE_BUTTERFLY])]):
        interpreter = Interpreter(content, custom_ops=custom_ops, delegates=delegates)
        interpreter.allocate_tensors()
        for details, value in zip(interpreter.get_input_details(), (a, b), strict=True):
            interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        for details, y in zip(interpreter.get_output_details(), expected, strict=True):
            np.testing.assert_allclose(interpreter.get_tensor(details["index"]), y, atol=1e-6)
        if delegates:
            print(interpreter.delegation_report())
    print("the operator agrees with TensorFlow, in Python and on the device")


if __name__ == "__main__":
    main()
