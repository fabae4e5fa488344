"""A model as a library for C: NAME.h, NAME.a, and an example, main.c."""

from collections.abc import Mapping, Sequence

from litecl.delegate.export.archive import Sizes, archive
from litecl.delegate.export.c_names import check_prefix, identifiers
from litecl.delegate.export.draft import Draft
from litecl.delegate.export.image import Image, Port
from litecl.delegate.export.library import objects
from litecl.delegate.export.machines import ExportMachine
from litecl.interpreter.schema import TensorType

EXAMPLE = "main.c"

_TYPES: Mapping[TensorType, str] = {
    TensorType.FLOAT32: "float",
    TensorType.INT8: "int8_t",
    TensorType.UINT8: "uint8_t",
    TensorType.INT16: "int16_t",
    TensorType.INT32: "int32_t",
    TensorType.INT64: "int64_t",
    TensorType.BOOL: "bool",
    TensorType.COMPLEX64: "float",  # pairs
}

_HEADER = """\
/* %(model)s as a library, made by litecl for %(machine)s: no heap, no system calls, no files.
   It is not reentrant: one thread at a time may call its functions. */
#ifndef %(NAME)s_H
#define %(NAME)s_H

#include <stdbool.h>
#include <stdint.h>

#define %(NAME)s_ARENA_BYTES %(arena_bytes)d /* of RAM, in the library's .bss */
#define %(NAME)s_CONSTANT_BYTES %(constant_bytes)d /* of flash, in the library's .rodata */
%(macros)s
enum %(name)s_status { %(NAME)s_OK = 0, %(NAME)s_TOO_MANY_ITERATIONS = 1 };

struct %(name)s_inputs {
%(inputs)s};

/* Where results are written; NULL for those that are not wanted. */
struct %(name)s_outputs {
%(outputs)s};

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the model: reads all inputs, writes the outputs; returns %(NAME)s_OK%(errors)s. */
int %(name)s_invoke(const struct %(name)s_inputs *inputs, const struct %(name)s_outputs *outputs);

/* %(reset)s */
void %(name)s_reset(void);

#ifdef __cplusplus
}
#endif
#endif
"""

_MAIN = """\
/* An example made by litecl: runs the model once on zeros, and prints the first elements of every output.
   Build it with: %(build)s */
#include <stdio.h>

#include "%(name)s.h"

%(memory)s
int main(void) {
    const struct %(name)s_inputs inputs = {%(inputs)s};
    const struct %(name)s_outputs outputs = {%(outputs)s};
    const int status = %(name)s_invoke(&inputs, &outputs);
    if (status != %(NAME)s_OK) {
        printf("status %%d\\n", status);
        return 1;
    }
%(prints)s    return 0;
}
"""


def c_files(drawn: Draft, model: str, name: str) -> tuple[dict[str, bytes], Sizes]:
    """Return the files of a library by name, and its sizes. model: its file's name. name: precedes all global names.

    Raises KernelBuildError, and DelegateError if C has no such names.
    """
    ports = _Ports(drawn.image, check_prefix(name))
    content, sizes = archive(objects(drawn, name, ports.interface), name, drawn.machine.compiler())
    files = {
        f"{name}.h": _header(drawn.image, model, name, drawn.machine, ports).encode(),
        f"{name}.a": content,
        EXAMPLE: ports.example().encode(),
    }
    return files, sizes


class _Ports:
    """The inputs and outputs of an image in C."""

    def __init__(self, image: Image, name: str) -> None:
        self._name = name
        self._of_inputs = _named(image.inputs)
        self._of_outputs = _named(image.outputs)

    @property
    def inputs(self) -> str:
        """The members of the structure of inputs."""
        return _members(self._of_inputs, self._name, "INPUT", "const ")

    @property
    def outputs(self) -> str:
        """The members of the structure of outputs."""
        return _members(self._of_outputs, self._name, "OUTPUT", "")

    @property
    def macros(self) -> str:
        """The sizes and quantizations as macros."""
        lines = []
        for kind, named in (("INPUT", self._of_inputs), ("OUTPUT", self._of_outputs)):
            for member, port in named.items():
                macro = f"{self._name}_{kind}_{member}".upper()
                lines.append(f"#define {macro}_SIZE {_count(port)} /* elements */")
                if port.quantization is not None:
                    scale, zero = port.quantization
                    lines.append(f"#define {macro}_SCALE {_float(scale)} /* real = scale * (q - zero point) */")
                    lines.append(f"#define {macro}_ZERO_POINT ({zero})")
        return "".join(f"{line}\n" for line in lines)

    @property
    def interface(self) -> str:
        """The C of ``NAME_invoke``."""
        name = self._name
        copies_in = "".join(
            f"    __builtin_memcpy(arena + {port.offset}, inputs->{member}, {port.size_bytes});\n"
            for member, port in self._of_inputs.items()
        )
        copies_out = "".join(
            f"    if (outputs->{member})\n"
            f"        __builtin_memcpy(outputs->{member}, {port.memory} + {port.offset}, {port.size_bytes});\n"
            for member, port in self._of_outputs.items()
        )
        structs = "".join(
            f"struct {name}_{which} {{\n"
            + ("".join(f"    {kind} *{member};\n" for member in named) or "    char unused;\n")
            + "};\n"
            for which, named, kind in (
                ("inputs", self._of_inputs, "const void"),
                ("outputs", self._of_outputs, "void"),
            )
        )
        return (
            f"{structs}\n"
            '__attribute__((visibility("default")))\n'
            f"int {name}_invoke(const struct {name}_inputs *inputs, const struct {name}_outputs *outputs) {{\n"
            f"    if (!is_ready) {name}_reset();\n{copies_in}"
            "    const int status = run();\n    if (status) return status;\n"
            f"{copies_out}    return 0;\n}}\n"
        )

    def example(self) -> str:
        """Return main.c."""
        name = self._name
        memory, prints = "", ""
        for kind, prefix, named in (("INPUT", "in", self._of_inputs), ("OUTPUT", "out", self._of_outputs)):
            for member, port in named.items():
                macro = f"{name}_{kind}_{member}".upper()
                memory += f"static {_TYPES[port.spec.type]} {prefix}_{member}[{macro}_SIZE];\n"
                if kind == "OUTPUT":
                    prints += (
                        f'    printf("{member}:");\n'
                        f"    for (int i = 0; i < {macro}_SIZE && i < 8; ++i) "
                        f'printf(" %g", (double)out_{member}[i]);\n    printf("\\n");\n'
                    )
        return _MAIN % {
            "name": name,
            "NAME": name.upper(),
            "build": f"cc main.c {name}.a -lm -o main",
            "memory": memory,
            "inputs": ", ".join(f".{member} = in_{member}" for member in self._of_inputs) or "0",
            "outputs": ", ".join(f".{member} = out_{member}" for member in self._of_outputs) or "0",
            "prints": prints,
        }


def _header(image: Image, model: str, name: str, machine: ExportMachine, ports: _Ports) -> str:
    kept = (
        "Sets all states as before the first run." if image.states else "Does nothing here: the model keeps no state."
    )
    return _HEADER % {
        "model": _comment(model),
        "machine": machine.name,
        "name": name,
        "NAME": name.upper(),
        "arena_bytes": max(1, image.arena_bytes),
        "constant_bytes": len(image.constants),
        "macros": ports.macros,
        "inputs": ports.inputs,
        "outputs": ports.outputs,
        "errors": f", or {name.upper()}_TOO_MANY_ITERATIONS,\n   which leaves states and outputs as they were"
        if image.is_limited
        else "",
        "reset": kept,
    }


def _named(ports: Sequence[Port]) -> dict[str, Port]:
    return dict(zip(identifiers(port.name for port in ports), ports, strict=True))


def _members(named: Mapping[str, Port], name: str, kind: str, const: str) -> str:
    if not named:
        return "    char unused;\n"
    return "".join(
        f"    {const}{_TYPES[port.spec.type]} *{member}; "
        f"/* {_comment(port.name)}: {port.spec.type.name} {[*port.spec.static_shape]}, "
        f"{f'{name}_{kind}_{member}_SIZE'.upper()} elements */\n"
        for member, port in named.items()
    )


def _count(port: Port) -> int:
    return port.spec.size * (2 if port.spec.type == TensorType.COMPLEX64 else 1)


def _float(value: float) -> str:
    text = f"{value:.9g}"
    return f"{text}f" if any(c in text for c in ".en") else f"{text}.0f"


def _comment(text: str) -> str:
    """Return a text that ends no comment."""
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in text).replace("*/", "* /")
