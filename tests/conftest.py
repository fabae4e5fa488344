"""``pytest --quick``: the part of the tests that `make check` runs, in under a minute and without TensorFlow."""

import re
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from litecl.delegate import devices
from support import empty_copies, gaps, pocl_processor, red_zones

_MOST_CASES = 1000  # of one test; of a longer table every n-th case is run
_MOST_COMPILED = 80
_EVERY = 20  # case is run on the back end for the processor, unless all are asked for
_NEEDS_TENSORFLOW = re.compile(r"""^(?:\w+ = )?pytest\.importorskip\("(?:tensorflow|keras)"\)""", re.M)
_LONG = frozenset(
    {
        *("test_call_patterns.py", "test_capabilities.py", "test_fault_files.py", "test_faults.py", "test_fuzz.py"),
        *("test_gpu_launches.py", "test_graph_fuzz.py", "test_peers.py", "test_processes.py", "test_processor.py"),
        "test_option_edges.py",
        *(
            "test_quantized_models.py",
            "test_real_models.py",
            "test_side_by_side.py",
            "test_tuning.py",
            "test_verify.py",
        ),
    }
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what is long or needs TensorFlow")
    parser.addoption("--gaps", action="store_true", help="look for writes between tensors (support/gaps.py)")
    parser.addoption("--native", action="store_true", help="run all cases on the back end for the processor itself")
    parser.addoption("--ray", action="store_true", help="kill a worker of Ray's too, which needs litecl[ray]")


def pytest_configure(config: pytest.Config) -> None:
    empty_copies.refuse()
    pocl_processor.watch()
    red_zones.leave()
    if config.getoption("gaps"):
        gaps.leave()
    config.addinivalue_line("markers", "opencl: unless a test names a device, it is the one for OpenCL")
    config.addinivalue_line("markers", "native: one of many cases on the back end for the processor")
    config.addinivalue_line("markers", "tensorflow: one test that needs TensorFlow, in a file that does not")


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the processor's own back end where a test is about OpenCL's, and there is a device for it."""
    if request.node.get_closest_marker("opencl"):
        monkeypatch.setattr(devices, "BACKENDS", (devices.BACKENDS[0], devices.BACKENDS[2]))


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
    long = collection_path.name in _LONG or _NEEDS_TENSORFLOW.search(collection_path.read_text())
    return True if long else None


def _most(path: Path, test: str) -> int:
    """Return how many cases of a test a quick run has: few of those that an OpenCL driver compiles one by one."""
    return _MOST_COMPILED if test == "test_device" or path.name.startswith("test_gpu_") else _MOST_CASES


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs TensorFlow where it is not installed; leave it out of a quick run, and thin out long tables."""
    if find_spec("tensorflow") is None:
        for item in items:
            if item.get_closest_marker("tensorflow"):
                item.add_marker(pytest.mark.skip(reason="TensorFlow is not installed"))
    if not config.getoption("native"):
        natives = [item for item in items if item.get_closest_marker("native")]
        left_out = {*natives} - {*natives[::_EVERY]}
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    if not config.getoption("quick"):
        return
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("tensorflow"):
            continue
        tests[item.path, getattr(item, "originalname", item.name)].append(item)
    kept = {item for key, cases in tests.items() for item in cases[:: -(-len(cases) // _most(*key))]}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
