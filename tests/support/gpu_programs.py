"""Every program that a GPU may be asked to build: kernel files with macros, of cases and of real models."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from litecl.delegate import CLDelegate
from litecl.delegate.backend.absent import AbsentDevice
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Model
from litecl.perf.models import layers
from support import networks, shared
from tools.gpu.models import SUBJECTS

Defines = tuple[tuple[str, str | int | float], ...]
Program = tuple[str, Defines]
MACROS = {"VW": 4, "LITECL_GPU": 1}
"""The macros that every program of a GPU is built with."""
_LARGEST = 1 << 26  # bytes of a model


def programs(
    profile: str, models: Iterable[Model | str | bytes], halved: Iterable[Model | str] = ()
) -> dict[Program, set[str]]:
    """Return the programs of some models, or files, on a GPU of the table, each with the entries that are used.

    halved: those to plan with weights that are halves too.
    """
    found: dict[Program, set[str]] = {}
    for model, precision in (*((model, "fp32") for model in models), *((model, "fp16") for model in halved)):
        device = AbsentDevice(profile)
        try:
            Interpreter(model, delegates=[CLDelegate(device=device, precision=precision)]).allocate_tensors()
        except LiteclError:  # which the interpreter cannot run either
            continue
        for launch in (work.launch for plan in device.plans for work in plan.works):
            defines = tuple(sorted({**launch.defines, **MACROS, **device.profile.gpu.macros}.items()))
            found.setdefault((launch.kernel, defines), set()).add(launch.entry)
    return found


def large() -> Iterator[bytes]:
    """Yield models of more arithmetic than cases have: a 3x3 convolution that every GPU computes by patches, and those
    that ``tools.gpu_page`` measures, of BERT one layer.
    """
    yield layers.convolution(64, 320)
    for batch in (1, 16):
        yield networks.bert(128, batch, 1)
        yield from (one.make(batch) for one in SUBJECTS if batch in one.batches and "BERT" not in one.name)


def zoo() -> Iterator[str]:
    """Yield the files of real models, if they are there."""
    for row in shared.rows():
        path = Path(shared.MODELS / row["file"])
        if path.stat().st_size <= _LARGEST:
            yield str(path)
