"""Runs a driver on LiteRT, which also stands in for tflite_runtime, since that has no release for recent Pythons."""

import runpy
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from ai_edge_litert import interpreter as litert


def _use_reference_kernels(module: Any) -> type:
    """Make the reference kernels the default, as litecl computes integers."""

    class Reference(module.Interpreter):
        def __init__(self, *args: Any, **options: Any) -> None:
            options.setdefault("experimental_op_resolver_type", module.OpResolverType.BUILTIN_REF)
            super().__init__(*args, **options)

    module.Interpreter = Reference
    return Reference


def _stand_in() -> None:
    runtime = ModuleType("tflite_runtime")
    runtime.__spec__, runtime.__path__ = ModuleSpec("tflite_runtime", None), []
    runtime.interpreter, runtime.__version__ = litert, "2.14.0"
    sys.modules |= {"tflite_runtime": runtime, "tflite_runtime.interpreter": litert}


def main() -> None:
    script, tensorflow, reference = sys.argv[1], "--tensorflow" in sys.argv, "--reference" in sys.argv
    if reference:
        _use_reference_kernels(litert)
    if tensorflow and reference:
        import tensorflow as tf
        from tensorflow.lite.python import interpreter

        tf.lite.Interpreter = _use_reference_kernels(interpreter)
    if not tensorflow:
        _stand_in()
    sys.argv = [script]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
