"""litecl: TensorFlow Lite models on GPUs and processors, loops and recurrent networks included.

``litecl.Interpreter(model, delegates=[litecl.CLDelegate()])`` runs a model, ``litecl.Converter`` makes one,
``litecl.Predictor`` runs one on batches of arrays, ``litecl.Generator`` a language model; ``litecl.bisect`` finds the
operator behind a wrong result; ``litecl.errors`` has what they raise. Their packages have the rest:
``litecl.interpreter``, ``litecl.delegate``, ``litecl.converter``, ``litecl.compiled_model``, ``litecl.perf``.
"""

import time as _time
from contextlib import ExitStack as _ExitStack
from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from litecl.bisection import bisect as bisect
    from litecl.converter import Converter as Converter
    from litecl.delegate import CLDelegate as CLDelegate
    from litecl.generate.generator import Generator as Generator
    from litecl.interpreter import Interpreter as Interpreter
    from litecl.predictor import Predictor as Predictor

__version__ = "0.1.0"
IMPORTED_NS = _time.time_ns()  # all other code of litecl was read since

_MODULES = {
    "CLDelegate": "litecl.delegate",
    "Converter": "litecl.converter",
    "Generator": "litecl.generate.generator",
    "Interpreter": "litecl.interpreter",
    "Predictor": "litecl.predictor",
    "bisect": "litecl.bisection",
}


def __getattr__(name: str) -> _Any:
    """Import a name on first use, to keep ``import litecl`` fast."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted([*_MODULES, "__version__", "install_as"])


def install_as(package: str = "ai_edge_litert", **options: _Any) -> _ExitStack:
    """Make litecl replace a package: "ai_edge_litert", "tflite_runtime" or "tensorflow" (its ``lite``).

    Later imports of its ``interpreter`` (for ai_edge_litert also ``compiled_model`` and its parts) get litecl's.
    Everything else still comes from the package, if it is installed. An interpreter without a delegate gets
    ``CLDelegate(**options)``, as TFLite adds XNNPACK, unless its resolver is BUILTIN_REF or
    BUILTIN_WITHOUT_DEFAULT_DELEGATES. ``always=True`` adds it in any case; ``cpu=True`` never adds it, and uses only
    the option ``dynamic_range``.

    Returns an object that undoes the replacement at the end of ``with litecl.install_as(...):`` or by ``close()``.
    """
    from litecl.drop_in import install

    return install(package, options)
