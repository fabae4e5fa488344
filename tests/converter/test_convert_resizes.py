"""Files whose resizes have both align_corners and half_pixel_centers become files that all of LiteRT's kernels run."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter, Quantization  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.file.writer import write  # noqa: E402
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, ResizeBilinearOptions  # noqa: E402
from support import oracle  # noqa: E402
from support.build import Graph, model  # noqa: E402

_IMAGES = np.random.default_rng(6).standard_normal((4, 1, 5, 6, 3)).astype(np.float32)


def _resized() -> bytes:
    g = Graph()
    size = g.const(np.array([9, 7], np.int32))
    return write(
        model(g.build(g.op(RESIZE_BILINEAR, [g.input((1, 5, 6, 3)), size], ResizeBilinearOptions(True, True))))
    )


@pytest.mark.parametrize("activations", ["float32", "int8", "int16"])
def test_a_file_with_both_options(activations: str) -> None:
    (wanted,) = oracle.run(_resized(), [_IMAGES[0]], oracle.RESOLVERS["default"])
    how = None if activations == "float32" else Quantization(activations=activations, data=[[x] for x in _IMAGES])
    content = Converter.from_tflite(_resized(), how).convert()
    (got,) = oracle.run(content, [_IMAGES[0]])
    # Integers are rounded to steps, and their positions to 1/1024.
    np.testing.assert_allclose(got, wanted, atol=1e-6 if how is None else 0.06, rtol=0)


@pytest.mark.parametrize("name", ["ResizeBilinear", "ResizeNearestNeighbor"])
def test_tensorflow_refuses_both(name: str) -> None:
    def resized(x: "tf.Tensor") -> "tf.Tensor":
        return getattr(tf.raw_ops, name)(images=x, size=[9, 7], align_corners=True, half_pixel_centers=True)

    concrete = tf.function(resized).get_concrete_function(tf.TensorSpec((1, 5, 6, 3), tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="half_pixel_centers"):
        concrete(tf.constant(_IMAGES[0]))
    with pytest.raises(ConversionError, match=f"{name} .*both align_corners and half_pixel_centers"):
        Converter.from_concrete_functions([concrete]).convert()
