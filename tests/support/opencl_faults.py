"""Fails OpenCL calls, each once, and checks the model during and after it (``python -m tools.faults opencl``)."""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from litecl.delegate import CLDelegate, devices, progress, report
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.opencl.devices import device
from litecl.delegate.opencl.memory import shared
from litecl.delegate.opencl.probes import capabilities
from litecl.interpreter.errors import DelegateError, DeviceNotFound
from litecl.interpreter.ops.variables import VAR_HANDLE
from support import opencl_seam
from support.as_gpu import gpu_like
from support.devices import several_threads
from support.fault_models import Session, Subject, expected
from support.fault_places import Place, Wrong, compare
from support.opencl_seam import Seam, installed

MODES: dict[str, dict[str, Any]] = {
    "one thread": {"num_threads": 1},
    "threads": {"num_threads": 2},
    "workers": {"device": several_threads().name},
    "queued": {"num_threads": 1, "queue_loops": True},
    "profile": {"num_threads": 1, "profile": True},
    "gpu": {"num_threads": 1},
    "uncached": {"num_threads": 2, "cache_dir": None},
    "integrated": {"num_threads": 1},
    "mapped": {"num_threads": 1},
}
_GPUS = {"gpu": Gpu(), "integrated": Gpu(integrated=True), "mapped": Gpu(integrated=True)}


def _raised(place: Place, routine: str) -> BaseException:
    """Return what a call raises."""
    return KeyboardInterrupt() if place.how == "interrupt" else opencl_seam.error(place.number, routine)


def _kept(told: report.DelegationReport) -> Any:
    """Return the parts of a report that a fault could make worse."""
    manners = tuple(row.manner for row in told.partitions)
    copied = told.counters.bytes_to_device, told.counters.bytes_to_host
    return told.device, told.claimed, manners, copied, frozenset(capabilities._known.values())


def count(subject: Subject, mode: str) -> tuple[list[str], Any]:
    """Return the names of all calls in order, and the report."""
    with _fresh(mode) as options, installed(Seam()) as seam:
        session = Session(subject, [CLDelegate(**options, **subject.options)])
        for step in session.steps():
            step()
        told = session.interpreter.delegation_report()
        return list(seam.calls), _kept(told)


def judge(place: Place) -> str:
    """Return what is wrong at a place; nothing where all is right."""
    seam = Seam(place.number, partial(_raised, place))
    with _fresh(place.mode) as options:
        options = {**options, **place.subject.options}
        try:
            with installed(seam):
                session, raised = _used(place, options)
                told = _told(place, session, raised)
            # The device is well again: what ran on it still does, what fell back still computes, and so do others.
            if told and not _has_variables(place.subject):
                compare(session.invoke(0), expected(place.subject.name)[1], "afterwards")
            del session
            again = Session(place.subject, [CLDelegate(**options, strict=True)])
            for step, wanted in zip(again.steps(), expected(place.subject.name), strict=True):
                compare(step(), wanted, "another interpreter")
            del again, step
        except Wrong as wrong:
            return str(wrong)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    devices._DEVICES.clear()
    gc.collect()
    leaked = Counter(type(item).__name__ for item in seam.live)
    return f"leaks {leaked}" if leaked else ""


def _used(place: Place, options: dict[str, Any]) -> tuple[Session, bool]:
    """A session used to its end, and whether a step raised what it should, after which it was done again."""
    session = Session(place.subject, [CLDelegate(**options, strict=place.how == "strict")])
    raised = False
    for number, (step, wanted) in enumerate(zip(session.steps(), expected(place.subject.name), strict=True)):
        try:
            got = step()
        except (DelegateError, KeyboardInterrupt) as error:
            named = isinstance(error, DeviceNotFound) and "device" in options  # whoever names a device wants no other
            typed = (named or place.how == "strict") and _told_of(str(error))
            if not (typed or isinstance(error, KeyboardInterrupt)):
                raise Wrong(f"step {number} raises {error!r}") from error
            raised = True
            got = step()
        compare(got, wanted, f"step {number}")
    return session, raised


def _told_of(text: str) -> bool:
    """Return whether an error tells of the fault."""
    return "on purpose" in text or "clEnqueueNDRangeKernel failed" in text


def _told(place: Place, session: Session, raised: bool) -> bool:
    """Return whether there is a report; it must tell of the fault."""
    try:
        told = session.interpreter.delegation_report()
        text = str(told)
    except (DelegateError, KeyboardInterrupt):
        if place.how == "fallback":
            raise
        return False
    if place.how != "fallback" and told.warnings:
        raise Wrong(f"{place.how}, and yet {told.warnings}")
    if not (raised or told.warnings) and _kept(told) != place.kept:
        raise Wrong(f"nothing is reported, but {_kept(told)} is not {place.kept}")
    if told.warnings and not text.startswith("WARNING"):
        raise Wrong("the printed report does not tell")
    return True


def _has_variables(subject: Subject) -> bool:
    graph = subject.model.subgraphs[0]
    return any(spec.is_variable for spec in graph.tensors) or any(node.op is VAR_HANDLE for node in graph.nodes)


@contextmanager
def _fresh(mode: str) -> Iterator[dict[str, Any]]:
    """Options for a mode, with nothing open and nothing known of any device."""
    for known in (devices._DEVICES, capabilities._known, device._sub_devices, progress._said, shared._probed):
        known.clear()
    real, svm, backends = device.target_of, device._has_fine_grained_svm, devices.BACKENDS
    devices.BACKENDS = [backends[0], backends[-1]]  # OpenCL's
    options = dict(MODES[mode])
    if mode in _GPUS:
        gpu = _GPUS[mode]
        device.target_of = lambda opened, *rest: replace(gpu_like(opened, real(opened, *rest)), gpu=gpu)
    if mode == "mapped":
        device._has_fine_grained_svm = lambda opened: False
    try:
        yield options
    finally:
        device.target_of, device._has_fine_grained_svm, devices.BACKENDS = real, svm, backends


def places(subject: Subject, mode: str, how: str) -> list[Place]:
    """All of them. The first pass fills the cache of programs, so that every later one makes the same calls."""
    if mode != "uncached":
        count(subject, mode)
    names, kept = count(subject, mode)
    return [Place(subject, mode, number, name, how, kept) for number, name in enumerate(names)]
