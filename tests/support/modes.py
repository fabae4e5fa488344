"""The ways in which a device runs loops, states and control flow."""

from typing import Any

import pytest

from support import devices

MODES: dict[str, dict[str, Any]] = {
    "one worker": {"num_threads": 1},
    "several workers": {"num_threads": 2},
    "queued": {"num_threads": 1, "queue_loops": True},
    "OpenCL": {"device": devices.tested()[0]},
    "OpenCL, queued": {"device": devices.tested()[0], "queue_loops": True},
}
in_every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
