"""A decoder that generates in a loop over caches runs whole on the device, and nothing copies the caches."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.delegate import CLDelegate  # noqa: E402
from litecl.delegate.plan.steps import works_of  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from support.planned_gpu import PlannedGpu  # noqa: E402

_EXAMPLE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "decoder.py"), run_name="decoder")
_SIZES = _EXAMPLE["Shape"](words=24, width=32, layers=2, heads=2, prompt=3, context=80)
_CACHE = 4 * _SIZES.context * _SIZES.width  # bytes of all heads


@pytest.fixture(scope="module")
def decoder() -> Any:
    return _EXAMPLE["Decoder"](_SIZES, seed=2)


@pytest.fixture(scope="module")
def content(decoder: Any) -> bytes:
    made: bytes = decoder.converted()
    return made


def test_words(decoder: Any, content: bytes) -> None:
    """As many as TensorFlow's and the same, up to every limit and to a sentence's end, in one region with one wait."""
    traced, device = decoder.traced(), Interpreter(content, delegates=[CLDelegate(strict=True)])
    runs = [i.get_signature_runner() for i in (device, Interpreter(content))]
    lengths = set()
    for first in range(6):
        prompt, limit = np.array([first, 5, 7], np.int32), np.int32((3, 4, 70, 80, 80, 80)[first])
        expected = traced(tf.constant(prompt), tf.constant(limit))
        lengths.add(int(expected["length"]))
        for run in runs:
            got = run(prompt=prompt, limit=limit)
            assert got["length"] == expected["length"]
            np.testing.assert_array_equal(got["text"], expected["text"])
    assert {3, 4, 80} & lengths
    assert len(lengths) > 2
    report = device.delegation_report()
    assert all(row.claimed for row in report.nodes)
    assert (len(report.partitions), report.counters.host_syncs) == (1, 1)


def test_caches_stay_where_they_are(content: bytes) -> None:
    """In the loop keys and values are written into the caches and read there: nothing moves one."""
    device = PlannedGpu("nvidia")
    Interpreter(content, delegates=[CLDelegate(device=device)]).allocate_tensors()
    (plan,) = device.plans
    (loop,) = plan.loops
    large = [work.launch for work in works_of(loop.body) if work.size_bytes >= _CACHE]
    assert {"attention", "copy_to_box"} <= {launch.entry.removesuffix("_local") for launch in large}
    assert not {"copy", "pack", "transpose", "fill"} & {launch.entry for launch in large}
