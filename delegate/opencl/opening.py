"""The devices that are open, which models share."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

from litecl.delegate import disk
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.opencl import fork
from litecl.delegate.opencl.device import Device, candidates, needs_threads
from litecl.delegate.opencl.errors import typed_errors
from litecl.delegate.report import summary, warn
from litecl.delegate.tuning import Tuning, load
from litecl.interpreter.errors import DelegateError

_LOG = logging.getLogger("litecl")
_DEVICES: dict[tuple[int, bool, Path | None], Device] = {}
_opening = fork.Section()  # one thread at a time opens a device


def open_device(options: CLOptions, flops: float, passed_over: list[str]) -> Device:
    """Return the device for these options and a model of so many arithmetic operations.

    passed_over: is added to, with the reason, for every device that cannot be used where the user named none. Raises
    DelegateError where no device is left; with ``strict``, where the first choice fails.
    """
    first: DelegateError | None = None
    with typed_errors("looking for a device"):
        for chosen in candidates(options.device, options.num_threads, flops, partial(tuning_of, options)):
            try:
                opened = _opened(options, chosen)
                _LOG.info("device %s, for %d arithmetic operations an invoke", opened.name, flops)
                return opened
            except DelegateError as error:
                if options.strict or options.device is not None:
                    raise
                first = first or error
                passed_over.append(f"{chosen.name}: {summary(error)}")
                warn(f"OpenCL device passed over: {passed_over[-1]}")
    raise first or DelegateError("no OpenCL device")


def _opened(options: CLOptions, chosen: Any) -> Device:
    """Contexts and programs are shared between models.

    Raises DelegateError for a device that was lost when the process was forked.
    """
    if fork.lost(needs_threads(chosen)):
        raise fork.lost_error(chosen.name)
    directory = disk.folder(options.cache_dir)
    key = (chosen.int_ptr, options.profile, directory)
    with _opening.lock:
        if key not in _DEVICES:
            _DEVICES[key] = Device(chosen, options.profile, directory)
        return _DEVICES[key]


def forget(device: Device | None) -> None:
    """Let the next model open a device that failed anew: its context may be of no more use."""
    with _opening.lock:
        for key in [key for key, opened in _DEVICES.items() if opened is device]:
            del _DEVICES[key]


def tuning_of(options: CLOptions, device: Any) -> Tuning:
    """Return the tuning that a user gives, or else that of the device."""
    return options.tuning or load(disk.folder(options.cache_dir), device)
