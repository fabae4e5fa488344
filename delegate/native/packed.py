"""The processor without a compiler: libraries come from a pack (``CLDelegate(programs=...)``)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from os import PathLike
from pathlib import Path

from litecl.delegate.native import features
from litecl.delegate.native.backend import NativeFound
from litecl.delegate.native.clang import Compiler, Facts, Unit
from litecl.delegate.native.kinds import KINDS, Kind, described, here
from litecl.delegate.native.library import Libraries
from litecl.delegate.native.pack import Pack, Packed, read
from litecl.delegate.native.processors import processors
from litecl.delegate.tuning import Demand, Tuning
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError, KernelBuildError


class PackedLibraries(Libraries):
    """A pack's libraries for one machine."""

    def __init__(self, device: "PackedFound") -> None:
        super().__init__(device.compiler, device.macros, None)
        self._pack, self._packed = device.pack, device.packed
        self.origin = f"from {device.pack.path.name}, for {device.packed.machine}"

    def _content(self, units: Sequence[Unit], keys: Sequence[str], name: str) -> bytes:
        content = self._pack.library(self._packed, name)
        if content is None:
            models = sorted((model, digest) for digest, model in self._pack.models.items())
            names = ", ".join(f"{model} ({digest[:12]})" for model, digest in models)
            files = ", ".join(sorted({Path(unit.name).name for unit in units}))
            raise KernelBuildError(
                f"{self._pack.path} has no library for this region, of {files}: it was made for {names}, for their "
                f"shapes then, {self._packed.machine}, threads {list(self._pack.threads)}, without launch times, with "
                f"dynamic_range={self._pack.dynamic_range!r}"
            )
        self.loaded += 1
        return content


@dataclass(frozen=True)
class PackedFound(NativeFound):
    """The processor, with a pack's libraries for it."""

    pack: Pack = field(kw_only=True)
    packed: Packed = field(kw_only=True, compare=False)

    @property
    def identity(self) -> Sequence[str]:
        """See ``Identified``. No tunings match it, so regions are planned as when the pack was made."""
        return self.name, str(self.pack.path), self.pack.digest, *self.compiler.identity

    def libraries(self, directory: Path | None) -> Libraries:
        """See ``NativeFound``."""
        return PackedLibraries(self)


def packed_device(programs: str | PathLike[str], demand: Demand) -> PackedFound:
    """Return the processor with a pack, and with the threads asked for or suitable for the model.

    Raises DelegateError if the pack can't be read or doesn't fit this machine.
    """
    pack = read(Path(programs))
    packed = _fitting(pack, here(), features.missing)
    threads = processors()
    suitable = 1 if demand.flops < Tuning().small_flops else threads
    most = min(demand.num_threads or suitable, threads)
    facts = Facts(packed.version, packed.processor, packed.macros)  # of the compiler that made the pack
    compiler = Compiler((str(pack.path), pack.digest), f"of {pack.path}", (), packed.options, known=facts)
    fitting = [n for n in pack.threads if n <= most]
    if not fitting:
        raise DelegateError(f"{pack.path} was made for threads {[*pack.threads]}, and here are {most}")
    return PackedFound(compiler, max(fitting), pack=pack, packed=packed)


def _fitting(pack: Pack, kind: Kind, missing: Callable[[str, Collection[str]], list[str]]) -> Packed:
    """Return the libraries for a kind of machine; if several fit the processor, those that use the most features."""
    of_kind = [packed for packed in pack.machines if KINDS[packed.machine.partition(":")[0]] is kind]
    if not of_kind:
        names = ", ".join(packed.machine for packed in pack.machines)
        raise DelegateError(f"{pack.path} is for {names}, and this machine is {kind.name} ({described()})")
    lacking = [(missing(kind.architecture, packed.features), packed) for packed in of_kind]
    fit = [packed for lacks, packed in lacking if not lacks]
    if not fit:
        gaps = "; ".join(f"for {packed.machine} it lacks {', '.join(map(_short, lacks))}" for lacks, packed in lacking)
        raise DelegateError(f"{pack.path} does not fit this machine's processor: {gaps}")
    return max(fit, key=lambda packed: len(packed.features))


def _short(macro: str) -> str:
    return macro.strip("_").removeprefix("ARM_FEATURE_").removeprefix("ARM_")
