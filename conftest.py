"""The parts of the suite: by default what guards the device that users have, `--nightly` everything, `--quick` what
`make check` runs, in about a minute and without TensorFlow. Tests of developers' tools (tools/tests/) run with those of
`--nightly` alone.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from importlib.util import find_spec
from pathlib import Path

import pytest

from litecl.delegate import devices, own_code
from support import empty_copies, gaps, pocl_processor, red_zones
from support.by_opencl import runs_by_opencl

_MOST_CASES = 1000  # of one test; of a longer table every n-th case is run
_EVERY_BY_OPENCL = 20  # case of a test is run by OpenCL, of which PoCL compiles each by itself
_EVERY_BY_OPENCL_QUICKLY = 100
_NEEDS_TENSORFLOW = re.compile(r"""^(?:\w+ = )?pytest\.importorskip\("(?:tensorflow|keras)"\)""", re.M)
_LONG = re.compile(
    r"""
    delegate/test_(attention|capabilities|compiling|fault_files|faults|float_mode|gaps|gpu_launches
        |native_faults|native_processes|packs_elsewhere|pocl_folder|processor|side_by_side|tiles|tuning)\.py
    |perf/test_(bench|bench_folder|board|cli_use|many|report|report_graph|report_truth|schemas|streams|tune|verify|verify_runtime)\.py
    |whole/test_(bisect|call_patterns|interrupts|processes|quantized_models|real_models|sample|scarce)\.py
    """,
    re.VERBOSE,
)


os.environ.pop("COLUMNS", None)  # pytest-xdist sets it in its workers, and litecl then wraps text in pipes too


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what is long or needs TensorFlow")
    parser.addoption("--gaps", action="store_true", help="look for writes between tensors (support/gaps.py)")
    parser.addoption("--nightly", action="store_true", help="run everything: fuzzers, all cases by OpenCL, processes")
    parser.addoption("--ray", action="store_true", help="kill a worker of Ray's too, which needs litecl[ray]")


def pytest_configure(config: pytest.Config) -> None:
    empty_copies.refuse()
    pocl_processor.watch()
    red_zones.leave()
    if config.getoption("gaps"):
        gaps.leave()
    config.addinivalue_line("markers", "opencl: unless a test names a device, it is the one for OpenCL")
    config.addinivalue_line("markers", "kept_plans: reads and writes plans in the cache folder, as users' processes do")
    config.addinivalue_line("markers", "nightly: long or about other programs; runs with --nightly alone")
    config.addinivalue_line("markers", "long: one test that a quick run leaves out")
    config.addinivalue_line("markers", "tensorflow: one test that needs TensorFlow, in a file that does not")


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the processor's own back end where a test is about OpenCL's, and there is a device for it."""
    if request.node.get_closest_marker("opencl"):
        monkeypatch.setattr(devices, "BACKENDS", (devices.BACKENDS[0], devices.BACKENDS[2]))


@pytest.fixture(autouse=True)
def _planned_anew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no plans, except in tests of kept plans: others replace parts of the planner, which no digest covers."""
    if not request.node.get_closest_marker("kept_plans"):
        monkeypatch.setattr(own_code, "digest", lambda: None)


@pytest.fixture(autouse=True)
def _checked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail where a kernel wrote beside the memory of a region of the processor's own back end, or with ``--gaps``
    between tensors.
    """
    yield
    if faults := red_zones.written():
        pytest.fail("\n".join(faults))
    if request.config.getoption("gaps") and (faults := gaps.written()):
        pytest.fail("\n".join(faults))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files, unread, so that TensorFlow is not loaded where it is installed."""
    if not config.getoption("quick") or collection_path.suffix != ".py":
        return None
    long = _LONG.search(collection_path.as_posix()) or _NEEDS_TENSORFLOW.search(collection_path.read_text())
    return True if long else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs TensorFlow where it is not installed; leave it out of a quick run, and thin out long tables."""
    if find_spec("tensorflow") is None:
        for item in items:
            if item.get_closest_marker("tensorflow"):
                item.add_marker(pytest.mark.skip(reason="TensorFlow is not installed"))
    if not config.getoption("nightly"):
        _leave_out(config, items, {item for item in items if item.get_closest_marker("nightly")})
        for cases in _by_test(item for item in items if runs_by_opencl(item)).values():
            _leave_out(config, items, {*cases} - {*cases[::_EVERY_BY_OPENCL]})
    if config.getoption("quick"):
        _leave_out(
            config, items, {i for i in items if i.get_closest_marker("tensorflow") or i.get_closest_marker("long")}
        )
        driven = [item for item in items if runs_by_opencl(item)]
        _leave_out(config, items, {*driven} - {*driven[::_EVERY_BY_OPENCL_QUICKLY]})
        kept = {item for cases in _by_test(items).values() for item in cases[:: -(-len(cases) // _MOST_CASES)]}
        _leave_out(config, items, {*items} - kept)


def _by_test(items: Iterable[pytest.Item]) -> dict[object, list[pytest.Item]]:
    tests = defaultdict(list)
    for item in items:
        tests[item.path, getattr(item, "originalname", item.name)].append(item)
    return tests


def _leave_out(config: pytest.Config, items: list[pytest.Item], left_out: Set[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
