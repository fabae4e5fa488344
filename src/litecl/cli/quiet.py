"""Loads TensorFlow without its libraries' output."""

import os
import sys
import tempfile
from importlib import import_module


def load_tensorflow() -> None:
    """Import TensorFlow, hiding log messages below errors unless TF_CPP_MIN_LOG_LEVEL is set.

    Its libraries write to the process's stderr before they read that level, so stderr is captured, and shown only if
    the import fails.
    """
    if "tensorflow" in sys.modules or "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.stderr.flush()
    with tempfile.TemporaryFile() as messages, os.fdopen(os.dup(2), "wb") as stderr:
        os.dup2(messages.fileno(), 2)
        try:
            import_module("tensorflow")
        except BaseException:
            messages.seek(0)
            stderr.write(messages.read())
            raise
        finally:
            os.dup2(stderr.fileno(), 2)
