"""A model for the web: model.wasm, a module of JavaScript with its types, and an example page."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from litecl.delegate.export.draft import Draft
from litecl.delegate.export.files import MARK, SECTION
from litecl.delegate.export.image import Port
from litecl.delegate.export.library import objects
from litecl.delegate.export.machines import WEB, WEB_RELAXED
from litecl.delegate.export.wasm_sections import custom_section
from litecl.delegate.native import clang
from litecl.delegate.native.processes import run
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.schema import TensorType

EXAMPLE = "index.html"
RELAXED = "model.relaxed.wasm"
WEIGHTS = "model.weights"
FILES = "model.wasm", "model.mjs", "model.d.mts"  # beside the example
_STACK_BYTES = 1 << 18  # kernels' local memory is on the stack
_EXPORTED = ("model_ready", "model_run", "model_reset", "model_arena", "model_constants")
_RELAXED_DOT = bytes((0xFD, 0x93, 0x02))  # i32x4.relaxed_dot_i8x16_i7x16_add_s
_DIGITS = 16  # that tell one export from another
_WEIGHTS_START = 64  # of constants in a file of their own
_UNDEFINED = "undefined symbol"

_INTERFACE = """\
__attribute__((visibility("default"))) void model_ready(const int image) { ready(image); }
__attribute__((visibility("default"))) int model_run(const int image) {
    switch (image) {
%(cases)s    }
    return -1;
}
__attribute__((visibility("default"))) u8 *model_arena(void) { return arena; }
__attribute__((visibility("default"))) const u8 *model_constants(void) { return %(constants)s; }
"""

_ARRAYS: Mapping[TensorType, str] = {
    TensorType.FLOAT32: "Float32Array",
    TensorType.INT8: "Int8Array",
    TensorType.UINT8: "Uint8Array",
    TensorType.INT16: "Int16Array",
    TensorType.INT32: "Int32Array",
    TensorType.INT64: "BigInt64Array",
    TensorType.BOOL: "Uint8Array",
    TensorType.COMPLEX64: "Float32Array",  # pairs
}

_TEMPLATES = Path(__file__).parent / "templates"


def web_files(drawn: Draft, model: str, *, relaxed: bool = False, apart: bool = False) -> dict[str, bytes]:
    """Return the files of a module by name. model: the name of its file. relaxed: add a module with relaxed SIMD, for
    engines that have it. apart: put constants into a file of their own.

    Raises KernelBuildError.
    """
    machines = {"model.wasm": drawn.machine} | ({RELAXED: WEB_RELAXED} if relaxed else {})
    parts = {name: _objects(replace(drawn, machine=machine), apart) for name, machine in machines.items()}
    modules = {name: _module(each) for name, each in parts.items()}
    needs_dots = any(_RELAXED_DOT in kernel for kernel in parts.get(RELAXED, ())[1:])
    mark = f"{MARK} {hashlib.sha256(b''.join(modules.values()) + drawn.constants).hexdigest()[:_DIGITS]}"
    contents = {name: module + custom_section(SECTION, mark) for name, module in modules.items()}
    if apart:
        contents[WEIGHTS] = mark.ljust(_WEIGHTS_START - 1).encode() + b"\n" + drawn.constants
    limit = "" if (most := drawn.options.max_loop_iterations) is None else f"a loop took more than {most} iterations"
    named = re.sub(r"[^ -~]", "?", model)
    values = {
        "LIMIT": limit,
        "RELAXED": ("dots" if needs_dots else "any") if relaxed else "",
        "MARK": mark,
        "WEIGHTS": len(drawn.constants) if apart else 0,
    }
    script = {name: json.dumps(value) for name, value in values.items()}
    texts = {
        "model.mjs": _template("model.mjs", MODEL=named, SIGNATURES=_signatures(drawn), **script),
        "model.d.mts": _template("model.d.mts", MODEL=named, SIGNATURES=_types(drawn)),
        EXAMPLE: _template(EXAMPLE, MODEL=escape(model)),
    }
    return contents | {name: text.encode() for name, text in texts.items()}


def _objects(drawn: Draft, apart: bool) -> list[bytes]:
    cases = "".join(f"        case {i}: return run_{i}();\n" for i in range(len(drawn.images)))
    interface = _INTERFACE % {"cases": cases, "constants": _place_of_constants(drawn)}
    return objects(drawn, "model", interface, apart=apart)


def _place_of_constants(drawn: Draft) -> str:
    return "constants" if drawn.constants else "arena"


def _module(parts: Sequence[bytes]) -> bytes:
    """Link object files into a module that imports nothing. Raises KernelBuildError."""
    zig = WEB.compiler().linker[0]
    exported = [f"--export={name}" for name in _EXPORTED]
    with clang.folder() as folder:
        module, paths = folder / "model.wasm", clang.written(parts, folder)
        alone = ("--no-entry", "--strip-all", "--stack-first", "-z", f"stack-size={_STACK_BYTES}", *exported)
        try:
            run((zig, "wasm-ld", *alone, "-o", str(module), *paths))
        except KernelBuildError as error:
            if _UNDEFINED not in str(error):
                raise
            run((*_with_libc(zig), *(f"-Wl,{flag}" for flag in exported), "-o", str(module), *paths))
        return module.read_bytes()


def _with_libc(zig: str) -> tuple[str, ...]:
    """Return the command that links with a mathematical library, which zig builds the first time: in 20 s."""
    stack = f"-Wl,-z,stack-size={_STACK_BYTES}"
    options = ("-mexec-model=reactor", "-nostartfiles", "-Wl,--no-entry", "-Wl,--strip-all", stack, "-lm")
    return (zig, "cc", "-target", "wasm32-wasi", *options)


def _signatures(drawn: Draft) -> str:
    """Return the signatures as properties of an object of JavaScript. In brackets any name is one, even __proto__."""
    lines = []
    for image in drawn.images.values():
        lines.append(f"    [{json.dumps(image.signature.key)}]: {{")
        for kind, ports in (("inputs", image.inputs), ("outputs", image.outputs)):
            tensors = [f"            [{json.dumps(port.name)}]: {json.dumps(_tensor(port))}," for port in ports]
            lines += [f"        {kind}: {{", *tensors, "        },"]
        lines.append("    },")
    return "".join(f"{line}\n" for line in lines)


def _tensor(port: Port) -> dict[str, object]:
    pairs = 2 if port.spec.type == TensorType.COMPLEX64 else 1
    described: dict[str, object] = {
        "type": port.spec.type.name,
        "array": _ARRAYS[port.spec.type],
        "shape": [*port.spec.static_shape],
        "size": port.spec.size * pairs,
        "memory": port.memory,
        "offset": port.offset,
    }
    if port.quantization is not None:
        described["scale"], described["zeroPoint"] = port.quantization
    return described


def _types(drawn: Draft) -> str:
    """Return the same as properties of an interface of TypeScript."""
    lines = []
    for image in drawn.images.values():
        lines.append(f"    {json.dumps(image.signature.key)}: {{")
        for kind, ports in (("inputs", image.inputs), ("outputs", image.outputs)):
            lines.append(f"        {kind}: {{")
            for port in ports:
                lines.append(f"            /** {port.spec.type.name} {[*port.spec.static_shape]} */")
                lines.append(f"            {json.dumps(port.name)}: {_ARRAYS[port.spec.type]};")
            lines.append("        };")
        lines.append("    };")
    return "".join(f"{line}\n" for line in lines)


def _template(name: str, /, **texts: str) -> str:
    """Return a file of templates/ with texts in place of their names between @; what stands in a text stays."""
    content = (_TEMPLATES / name).read_text(encoding="utf-8")
    return re.sub("@([A-Z]+)@", lambda match: texts[match[1]], content)
