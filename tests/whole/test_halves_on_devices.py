"""The emulation of halves against a device that has them: the same verdicts, node by node and for the whole model.

No device here may have ``cl_khr_fp16``; Intel's runtime for CPUs has: ``tools/intel_cpu.sh`` with this file.
"""

from typing import Any

import numpy as np
import pytest

from litecl.bisection.survey import survey
from litecl.bisection.tolerance import Tolerance
from litecl.halves import Mode
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from support import devices, oracle
from support.half_device import HalfDevice
from support.half_models import FAILING, OUTLIER, Failing

_SHARE = 0.01
_CASES = [(name, fine) for name in FAILING for fine in (False, True) if not (fine and "epsilon" in name)]


def _device(mode: Mode) -> HalfDevice:
    fitting = [d for d in devices.tested() if mode == "storage" or "cl_khr_fp16" in d.extensions]
    if not fitting:
        pytest.skip("no device computes in halves (cl_khr_fp16): tools/intel_cpu.sh fetches one")
    return HalfDevice(fitting[0], mode)


def _is_wrong(got: Array, expected: Array) -> bool:
    return not np.abs(got - expected).max() <= _SHARE * np.abs(expected).max()  # of a NaN too


def _fine(case: Failing) -> Failing:
    """The same model, with an activation that is like the others."""
    feed = case.feed / 1000 if case.feed.ndim == 4 else case.feed.copy()
    if feed.ndim == 3:
        feed[..., OUTLIER] = feed[..., 0]
    return Failing(case.content, feed, case.op, {}, True)


@pytest.mark.parametrize("mode", ["storage", "both"])
@pytest.mark.parametrize(("name", "fine"), _CASES)
def test_same_verdicts(name: str, fine: bool, mode: Any) -> None:
    device, case = _device(mode), _fine(FAILING[name]()) if fine else FAILING[name]()
    model = read(case.content)
    graph = model.subgraphs[0]
    tensors = [t for node in graph.nodes for t in node.outputs]
    known = dict(zip(tensors, oracle.run_to(case.content, [case.feed], tensors), strict=True))
    known |= {graph.inputs[0]: case.feed} | {t: s.data for t, s in enumerate(graph.tensors) if s.data is not None}
    whole, wrong, lost = dict(known), set(), set()
    for position, node in enumerate(graph.nodes):
        (result,) = node.outputs
        alone = device.run(node, [known.get(t) for t in node.inputs])
        wrong |= {position} if _is_wrong(alone, known[result]) else set()
        lost |= {position} if not np.isfinite(alone).all() else set()
        whole[result] = device.run(node, [whole.get(t) for t in node.inputs])
    found = survey(case.content, model, {"main_in0": case.feed}, mode, Tolerance(_SHARE))
    named = {f.node for f in found.findings if not f.error <= _SHARE}
    assert named == wrong
    assert {f.node for f in found.findings if not np.isfinite(f.error)} == lost
    (output,) = graph.outputs
    assert (found.error > _SHARE) == _is_wrong(whole[output], known[output]) == (not fine)
