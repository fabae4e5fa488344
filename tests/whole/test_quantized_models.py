"""Real quantized networks, whole on the device: equal to LiteRT's reference kernels, bit for bit."""

from pathlib import Path

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from support import oracle
from support.shared import RealModel, invoked, needs_shared

pytestmark = needs_shared

_ONE_PARTITION = (
    "mlcommons-tiny/ad01_int8",
    "mlcommons-tiny/kws_ref_model.",
    "mlcommons-tiny/pretrainedResnet_quant",
    "mlcommons-tiny/str_ww_ref_model",
    "mlcommons-tiny/vww_96_int8",
    "mobilenet_v1_0.25_128_quant",
    "tf2_mobilenet_v2_1.0_224_ptq",
)
_MODELS = tuple(m for m in invoked("int8", "uint8") if any(name in m.file for name in _ONE_PARTITION))


@pytest.mark.parametrize("model", _MODELS, ids=lambda m: Path(m.file).name)
def test_one_partition_equals_the_reference_kernels(model: RealModel) -> None:
    interpreter = Interpreter(str(model.path), delegates=[CLDelegate(strict=True, dynamic_range="reference")])
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    feeds = []
    for detail in interpreter.get_input_details():
        limits = np.iinfo(detail["dtype"])
        feeds.append(rng.integers(limits.min, limits.max + 1, detail["shape"]).astype(detail["dtype"]))
        interpreter.set_tensor(detail["index"], feeds[-1])
    interpreter.invoke()
    report = interpreter.delegation_report()
    assert (report.claimed, len(report.partitions)) == (len(report.nodes), 1), str(report)
    expected_outputs = oracle.run(model.path.read_bytes(), feeds)
    for detail, expected in zip(interpreter.get_output_details(), expected_outputs, strict=True):
        np.testing.assert_array_equal(interpreter.get_tensor(detail["index"]), expected)
