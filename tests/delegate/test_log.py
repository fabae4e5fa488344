"""The logger ``litecl``: created on first use, safe to show, and available to listeners that come early or late."""

import logging
import subprocess
import sys

import pytest

from litecl.delegate.progress import info, logger, warn

_LATE = """
import sys
before = "logging" in sys.modules
from litecl.delegate.progress import info, is_followed
assert before or "logging" not in sys.modules
assert not is_followed()
info("nobody sees this")
import logging
assert not is_followed()
logging.basicConfig(stream=sys.stdout, format="%(message)s")
info("nor this")
logging.getLogger("litecl").setLevel(logging.INFO)
assert is_followed()
info("%s", "a\\x1b[2J\\nb")
"""


def test_control_characters_are_escaped(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "litecl"):
        warn("first\x1b]0;\n")
        info("second %s", "\u202e\r")
        logging.getLogger("litecl").error("third %s", "\x9b")
    assert caplog.messages == [r"first\x1b]0;\n", r"second \u202e\r", r"third \x9b"]
    assert logger() is logging.getLogger("litecl")


def test_logging_imported_after_litecl() -> None:
    ran = subprocess.run([sys.executable, "-c", _LATE], capture_output=True, text=True, check=True)
    assert ran.stdout == "a\\x1b[2J\\nb\n"
