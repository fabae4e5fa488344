"""Lists the devices of every back end, chooses one, and opens it once for all models."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path

from litecl.delegate import disk
from litecl.delegate.backend import fork
from litecl.delegate.backend.errors import NoRuntime, host_memory
from litecl.delegate.backend.protocols import Backend, Device, FoundDevice, Identified
from litecl.delegate.backend.stack import on_ample_stack
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.naming import advice, named
from litecl.delegate.progress import info, warn
from litecl.delegate.report import summary
from litecl.delegate.tuning import Demand, Tuning, load
from litecl.interpreter.buffers import Buffer
from litecl.interpreter.errors import ArgumentError, DelegateError, DeviceNotFound

_DEVICES: dict[tuple[FoundDevice, bool, Path | None], Device] = {}
_opening = fork.Section(needs_runtime=False)  # one thread at a time opens a device

NATIVE = "native"  # the name of the only device of its back end

Tuned = Callable[[FoundDevice], Tuning]


@on_ample_stack
def _opencl(*, gpus: bool) -> Backend:
    """Import the back end on first use. Raises NoRuntime without pyopencl."""
    try:
        from litecl.delegate.opencl.backend import OpenCL
    except ImportError as error:
        raise NoRuntime(f"OpenCL cannot be used: {error}. {advice()}") from error
    return OpenCL(gpus)


def _native(compiler: str | PathLike[str] | None = None) -> Backend:
    """Import the back end for the processor itself. compiler: the one to use instead of the default."""
    from litecl.delegate.native.backend import Native

    return Native(None if compiler is None else Path(compiler))


class _Nothing:
    """A back end without devices; see ``Backend`` in ``delegate/backend/protocols.py``."""

    def devices(self, directory: Path | None = None) -> list[FoundDevice]:
        return []

    def candidates(
        self, demand: Demand, tuned: "Tuned", directory: Path | None = None, platform: str = ""
    ) -> Iterator[FoundDevice]:
        return iter(())

    def of(self, device: object) -> None:
        return None

    def buffer(self, handle: object) -> None:
        return None


def _gpus() -> Backend:
    """Return the back end for GPUs; importing it doubles a process's startup time, so skip it if there are none."""
    from litecl.delegate.opencl_drivers import may_have_gpus

    return _opencl(gpus=True) if may_have_gpus() else _Nothing()


# Every back end, in order of preference: GPUs, the processor itself, then other OpenCL devices. No other code outside
# their folders names them.
BACKENDS: Sequence[Callable[[], Backend]] = (_gpus, _native, partial(_opencl, gpus=False))


def _of_each(
    ask: Callable[[Backend], Iterable[FoundDevice]], faults: list[DelegateError] | None = None
) -> Iterator[FoundDevice]:
    """Yield the devices of every back end; raise their merged errors if no back end has a device.

    faults: collects the errors of back ends whose runtime is installed.
    """
    errors, any_device = list[DelegateError](), False
    for backend in BACKENDS:
        try:
            for device in ask(backend()):
                any_device = True
                yield device
        except DelegateError as error:
            errors.append(error)
            if faults is not None and not isinstance(error, NoRuntime):
                faults.append(error)
    if errors and not any_device:
        raise _joined(errors)


def _joined(errors: Sequence[DelegateError]) -> DelegateError:
    """Merge errors, dropping duplicates; keep their type if they share one."""
    (kind,) = types if len(types := {type(error) for error in errors}) == 1 else (DelegateError,)
    return kind("; ".join(dict.fromkeys(map(str, errors))))


def check(wanted: object, directory: Path | None = None) -> None:
    """Import every back end, and raise DeviceNotFound if the wanted device does not exist. directory: the cache of
    device facts.
    """
    for backend in BACKENDS:
        with suppress(DelegateError):
            backend()
    if wanted is not None:
        next(candidates(wanted, Demand(), lambda device: Tuning(), directory))


def devices(directory: Path | None = None, faults: list[DelegateError] | None = None) -> list[FoundDevice]:
    """Return every device of every back end. Raises DelegateError if errors leave none.

    directory: the cache of device facts. faults: collects the errors of back ends whose runtime is installed.
    """
    return list(_of_each(lambda backend: backend.devices(directory), faults))


def candidates(
    wanted: object,
    demand: Demand,
    tuned: Tuned,
    directory: Path | None = None,
    faults: list[DelegateError] | None = None,
) -> Iterator[FoundDevice]:
    """Yield the device for a model, then, if the user named none, the fallbacks.

    wanted: as ``CLDelegate(device=...)``. demand: of the model. tuned: returns the tuning of a device. directory: the
    cache of device facts. faults: collects the errors of back ends whose runtime is installed.
    """
    if wanted is None:
        yield from _of_each(lambda backend: backend.candidates(demand, tuned, directory), faults)
    elif wanted == NATIVE:  # with the model's thread count; other back ends may load drivers just to list
        yield from _native().candidates(demand, tuned, directory)
    else:
        yield _named(wanted, demand, tuned, directory) if isinstance(wanted, int | str) else _own(wanted)


def choose(
    wanted: object = None,
    num_threads: int | None = None,
    flops: float = 0.0,
    tuned: Tuned = lambda device: Tuning(),
    directory: Path | None = None,
    *,
    integers: bool = False,
) -> FoundDevice:
    """Return the first of the candidates. Raises DelegateError if there is none."""
    for device in candidates(wanted, Demand(num_threads, flops, integers), tuned, directory):
        return device
    raise DelegateError("no device")


def gpus() -> list[FoundDevice]:
    """Return every GPU; an empty list if there is no device at all."""
    try:
        return [device for device in devices() if device.describe().type == "GPU"]
    except DelegateError:
        return []


def _named(wanted: int | str, demand: Demand, tuned: Tuned, directory: Path | None) -> FoundDevice:
    """Return a device by its index, its name or a fragment of one name; or the device of a named platform ("pocl") that
    suits the model. Raises DeviceNotFound.
    """
    errors = list[DelegateError]()
    try:
        listed = devices(directory, errors)
        try:
            return named(listed, wanted)
        except DeviceNotFound:
            if isinstance(wanted, str):
                with suppress(DelegateError):
                    for suitable in _of_each(lambda backend: backend.candidates(demand, tuned, directory, wanted)):
                        return suitable
            raise
    except DeviceNotFound as error:
        raise DeviceNotFound(f"device {wanted!r}: {errors[0]}") if errors else error from None
    except DelegateError as error:
        raise DeviceNotFound(f"device {wanted!r}: {error}") from error


def _own(wanted: object) -> FoundDevice:
    """Return the device that an object represents: a ``FoundDevice`` as is, or wrap one of a runtime's own library.
    Raises DeviceNotFound.
    """
    if isinstance(wanted, FoundDevice):
        return wanted
    device = next((device for backend in BACKENDS if (device := backend().of(wanted)) is not None), None)
    if device is None:
        raise DeviceNotFound(f"device: expected an index, a name or a device, got {wanted!r}")
    return device


def user_buffer(handle: object) -> Buffer:
    """Return the buffer that an object of a runtime's own library represents. Raises ArgumentError for any other."""
    buffer = next((buffer for backend in BACKENDS if (buffer := backend().buffer(handle)) is not None), None)
    if buffer is None:
        raise ArgumentError(f"expected a buffer of a device, such as a pyopencl.Buffer, got {type(handle).__name__}")
    return buffer


def open_device(options: CLOptions, demand: Demand, passed_over: list[str]) -> Device:
    """Open the device for these options and a model.

    passed_over: collects unusable devices with the reason, if the user named none. Raises DelegateError if no device is
    left; with ``strict``, if the first choice fails.
    """
    first, faults = None, list[DelegateError]()
    with host_memory("looking for a device"):
        folder = disk.folder(options.cache_dir)
        for device in _candidates(options, demand, folder, faults):
            try:
                if faults and options.strict:
                    raise faults[0]
                while faults:
                    _pass_over("a back end", faults.pop(0), passed_over)
                opened = _opened(options, _steadied(device) if options.deterministic else device)
                info("device %s, for %d arithmetic operations an invoke", opened.name, demand.flops)
                return opened
            except DelegateError as error:
                if options.strict or options.device is not None:
                    raise
                first = first or error
                _pass_over(device.name, error, passed_over)
    raise first or DelegateError("no device")


def _candidates(
    options: CLOptions, demand: Demand, folder: Path | None, faults: list[DelegateError]
) -> Iterator[FoundDevice]:
    """Return the candidates; with a compiler or a pack of programs only the processor. Raises DelegateError if the
    user named another device.
    """
    tuned = partial(tuning_of, options)
    if options.programs is None and options.compiler is None:
        wanted = NATIVE if options.deterministic and options.device is None else options.device
        return candidates(wanted, demand, tuned, folder, faults)
    if options.device not in (None, NATIVE):
        given = "compiler" if options.programs is None else "programs"
        raise DelegateError(f"{given} is for the processor itself: expected device='native', got {options.device!r}")
    if options.programs is None:
        return _native(options.compiler).candidates(demand, tuned, folder)
    from litecl.delegate.native.packed import packed_device

    return iter([packed_device(options.programs, demand)])


def _steadied(device: FoundDevice) -> FoundDevice:
    """Return a device that computes the same bits as others. Raises DelegateError for any but the processor."""
    from litecl.delegate.native.backend import NativeFound

    if not isinstance(device, NativeFound):
        raise DelegateError(f"deterministic: expected device='native', got {device.name!r}")
    return device.steadied()


def _pass_over(name: str, error: DelegateError, passed_over: list[str]) -> None:
    passed_over.append(f"{name}: {summary(error)}")
    warn(f"device passed over: {passed_over[-1]}")


def _opened(options: CLOptions, device: FoundDevice) -> Device:
    """Open a device, once for each profile and folder: models share it.

    Raises DelegateError for a device that was lost when the process was forked.
    """
    if fork.lost(device):
        raise fork.lost_error(device.name)
    key = (device, options.profile, disk.folder(options.cache_dir))
    with _opening.lock:
        if key not in _DEVICES:
            _DEVICES[key] = device.open(profile=key[1], directory=key[2])
        return _DEVICES[key]


def forget(device: Device | None) -> None:
    """Have the next model reopen a failed device, whose context may be unusable. One lost to a fork stays lost."""
    if device is None or fork.lost(device):
        return
    with _opening.lock:
        for key in [key for key, opened in _DEVICES.items() if opened is device]:
            del _DEVICES[key]


def tuning_of(options: CLOptions, device: Identified) -> Tuning:
    """Return the user's tuning, or else the device's; none that were measured if bits must be the same everywhere."""
    if options.deterministic:
        return Tuning()
    return options.tuning or load(disk.folder(options.cache_dir), device.identity)
