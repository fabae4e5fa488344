"""Objects compiled ahead, in the package ``litecl_objects``: a folder of cache entries for each of several processors.

``tools/objects.py`` writes the package. Python's other packages are trusted as much. Kernel files are compiled without
leave to reorder floats, so objects for a processor on which they have the same macros differ from this one's in the
choice and order of instructions alone, and compute the same bits.
"""

import importlib.util
from functools import cache
from pathlib import Path

from litecl.delegate import disk
from litecl.delegate.native import features, kinds
from litecl.delegate.native.clang import Compiler, Unit
from litecl.delegate.native.probe import restored
from litecl.interpreter.dataclass import dataclass

PACKAGE = "litecl_objects"
COMPILER = "compiler.json"  # the file with the compiler of a folder's objects, see ``probe.keep``
SAME = (  # the prefixes of macros that kernel files test, or that change how halves are computed
    *("_WIN32", "__APPLE__", "__linux__", "__SIZEOF_POINTER__", "__x86_64__", "__i386__", "__SSE2__", "__SSSE3__"),
    *("__F16C__", "__FMA__", "__AVX2__", "__AVX512F__", "__AVX512BW__", "__AVX512VL__", "__AVX512VBMI__"),
    *("__AVX512VNNI__", "__AVX512FP16__", "__AVXVNNI__", "__aarch64__", "__arm__", "__ARM_NEON", "__ARM_FEATURE_FP16_"),
    *("__ARM_FEATURE_DOTPROD", "__ARM_FEATURE_MATMUL_INT8", "__ARM_FEATURE_MVE", "__ARM_FEATURE_SIMD32"),
    *("__ARM_FEATURE_IDIV", "__ARM_FEATURE_FMA"),
)


@dataclass(frozen=True)
class Ahead:
    """The objects for one processor, which this one suits too. compiler: the one that made them."""

    compiler: Compiler
    folder: Path

    def read(self, unit: Unit) -> bytes | None:
        """Return a source's object; None if it is missing or untrusted."""
        return disk.read_sealed(self.folder / f"{self.compiler.key(unit)}.bin")


@cache
def suitable(compiler: Compiler) -> Ahead | None:
    """Return the objects that run on a compiler's target and make the most of it; None if there are none."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = spec.submodule_search_locations or () if spec else ()
    kept = [(path.parent, disk.read_sealed(path)) for each in folders for path in Path(each).glob(f"*/{COMPILER}")]
    made = ((folder, restored(compiler, content)) for folder, content in kept)
    fitting = [Ahead(each, folder) for folder, each in made if each is not None and _suits(each, compiler)]
    return max(fitting, key=lambda each: len(_features(each.compiler)), default=None)


def _suits(made: Compiler, compiler: Compiler) -> bool:
    """Return whether objects run on a compiler's target, with the same code in their sources."""
    names = made.macros.keys() | compiler.macros.keys()
    same = all(made.macros.get(name) == compiler.macros.get(name) for name in names if name.startswith(SAME))
    return same and made.version == compiler.version and _features(made) <= _features(compiler)


def _features(compiler: Compiler) -> frozenset[str]:
    kind = kinds.known()
    return frozenset(features.known(kind.architecture) if kind else ()) & compiler.macros.keys()
