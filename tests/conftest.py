"""``pytest --quick``: the part of the tests that `make check` runs, in under a minute and without TensorFlow."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

_MOST_CASES = 800  # of one test; of a longer table every n-th case is run
_NEEDS_TENSORFLOW = re.compile(r"""importorskip\("(tensorflow|keras)"\)""")
_LONG = frozenset({"test_fuzz.py", "test_gpu_launches.py", "test_peers.py", "test_real_models.py"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what is long or needs TensorFlow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files, unread, so that TensorFlow is not loaded where it is installed."""
    if not config.getoption("quick") or collection_path.suffix != ".py":
        return None
    long = collection_path.name in _LONG or _NEEDS_TENSORFLOW.search(collection_path.read_text())
    return True if long else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Thin out the long tables."""
    if not config.getoption("quick"):
        return
    tests = defaultdict(list)
    for item in items:
        tests[item.path, getattr(item, "originalname", item.name)].append(item)
    kept = {item for cases in tests.values() for item in cases[:: -(-len(cases) // _MOST_CASES)]}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
