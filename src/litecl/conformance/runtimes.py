"""Loads runtimes to check, by name, by the path of a module with tf.lite's API, or as a command."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

from litecl.bisection.runners import Run, run
from litecl.conformance import tflite_micro, vela
from litecl.conformance.program import Program
from litecl.conformance.vela import Placement
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError, MissingExtra
from litecl.interpreter.numbers import Numbers
from litecl.perf.contenders import typed_errors
from litecl.perf.feeds import Runtime
from litecl.perf.peers import PEERS, litert, onnxruntime, openvino
from litecl.perf.peers.litert import LITERT_REFERENCE, RESOLVERS, peer_name

LITECL, TFLITE_MICRO, VELA = "litecl", "tflite_micro", "vela"
_OPENVINO, _ONNXRUNTIME = "openvino", "onnxruntime"
_EXACT = ((LITERT_REFERENCE, "reference"), (LITECL, "reference"), (LITECL, "tflm"), (TFLITE_MICRO, "tflm"))
_LITERT_MODULE = "ai_edge_litert.interpreter"
_MODULES = {LITECL: "litecl", "tflite_runtime": "tflite_runtime.interpreter"} | dict.fromkeys(RESOLVERS, _LITERT_MODULE)


@dataclass(frozen=True)
class Suspect:
    """A runtime under test: ``name`` as on the command line, the package and its version.

    load: creates an interpreter from a file's content; None for a program and a compiler. numbers: of the interpreter
    that it is compared with. place: compiles a file.
    """

    name: str
    package: str
    version: str
    load: Callable[[bytes], Runtime] | None = None
    program: Program | None = None
    numbers: Numbers = "reference"
    place: Callable[[bytes], Placement] | None = None

    @property
    def steps(self) -> int:
        """The tolerance of quantized results in steps: optimised kernels round differently."""
        return int((self.name, self.numbers) not in _EXACT)

    def prepare(self, content: bytes) -> Run:
        """Return a function that runs a model. Raises LiteclError."""
        if self.program is not None:
            return self.program.prepare(content)
        assert self.load is not None
        with typed_errors(self.name, "load"):
            runtime = self.load(content)
        return lambda values: run(runtime, values, self.name)

    def described(self) -> Mapping[str, Any]:
        """Return the runtime's description for results."""
        option = f"--command {self.name!r}" if self.program is not None else f"--runtime {self.name}"
        numbers = {} if self.numbers == "reference" else {"numbers": self.numbers}
        return {
            "name": self.name,
            "platform": self.package,
            "driver": self.version,
            "version": "",
            "option": option,
            **numbers,
        }


def suspect(name: str, numbers: Numbers = "reference", *, strict: bool = True) -> Suspect:
    """Return a runtime: ``litert``, ``litert-reference`` (its reference kernels), ``litecl`` (its default device),
    ``tflite_micro``, ``openvino``, ``onnxruntime`` (by tf2onnx), ``vela`` (a compiler), ``tflite_runtime``, or the path
    of a module with a class ``Interpreter`` like tf.lite's. numbers: of litecl, as suspect and as reference. strict: as
    what verify checks, litecl refuses what its device doesn't take; otherwise it has its defaults.

    Raises MissingExtra for a module that isn't installed, LiteclError for one without that class.
    """
    return replace(_suspect(peer_name(name), numbers, strict=strict), numbers=numbers)


def _suspect(name: str, numbers: Numbers, *, strict: bool) -> Suspect:
    if name == TFLITE_MICRO:
        return Suspect(name, name, _version(tflite_micro.module(), name), tflite_micro.load)
    if name == VELA:
        return Suspect(name, "ethosu", _version(vela.module(), "ethosu"), place=vela.place)
    if name in (_OPENVINO, _ONNXRUNTIME):
        PEERS[name].require(name)
    if name == _OPENVINO:
        return Suspect(name, name, PEERS[name].version, partial(openvino.load, num_threads=1))
    if name == _ONNXRUNTIME:
        return Suspect(name, name, f"{PEERS[name].version} by tf2onnx {version('tf2onnx')}", onnxruntime.load_here)
    path = _MODULES.get(name, name)
    try:
        module = importlib.import_module(path)
    except ImportError as error:
        raise MissingExtra(f"runtime {name}: cannot import {path}: {error}") from error
    package = path.partition(".")[0]
    if name in RESOLVERS:
        load = partial(litert.load, num_threads=1, resolver=RESOLVERS[name])
        return Suspect(name, package, _version(module, package), load)
    if name == LITECL:
        return Suspect(name, package, _version(module, package), partial(_litecl, numbers=numbers, strict=strict))
    if not hasattr(module, "Interpreter"):
        raise LiteclError(f"runtime {name}: expected a class Interpreter in {path}, got none there")
    return Suspect(name, package, _version(module, package), lambda content: module.Interpreter(model_content=content))


def command(line: str, numbers: Numbers = "reference") -> Suspect:
    """Return a program as a runtime: see ``program``."""
    program = Program(line)
    return Suspect(line, program.words[0], "", program=program, numbers=numbers)


def _litecl(content: bytes, numbers: Numbers, *, strict: bool) -> Runtime:
    delegate = CLDelegate(strict=True, dynamic_range="reference") if strict else CLDelegate()
    return Interpreter(model_content=content, delegates=[delegate], numbers=numbers)


def _version(module: Any, package: str) -> str:
    """Return a package's version from its metadata, else its ``__version__``, else an empty string."""
    try:
        return version(packages_distributions()[package][0])
    except (KeyError, PackageNotFoundError):
        return str(getattr(importlib.import_module(package), "__version__", getattr(module, "__version__", "")))
