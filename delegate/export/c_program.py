"""A model as a library for C: NAME.h, NAME.a, and an example, main.c."""

from collections.abc import Iterable, Mapping, Sequence

from litecl.delegate.export.archive import Sizes, archive
from litecl.delegate.export.c_names import check_prefix, identifiers
from litecl.delegate.export.draft import Draft
from litecl.delegate.export.files import sealed
from litecl.delegate.export.image import Image, Port
from litecl.delegate.export.library import objects, version
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
#define %(NAME)s_STACK_BYTES %(stack_bytes)d /* that a call takes at most, beside what functions outside take */

enum %(name)s_status { %(NAME)s_OK = 0, %(NAME)s_TOO_MANY_ITERATIONS = 1 };

#ifdef __cplusplus
extern "C" {
#endif

%(entries)s
/* %(reset)s */
void %(name)s_reset(void);

#ifdef __cplusplus
}
#endif
#endif
"""

_ENTRY = """\
%(macros)s
struct %(prefix)s_inputs {
%(inputs)s};

/* Where results are written; NULL for those that are not wanted. */
struct %(prefix)s_outputs {
%(outputs)s};

/* A header and a library of different exports do not link. */
#define %(prefix)s_invoke %(prefix)s_invoke_%(digest)s

/* Runs the model: reads all inputs, writes the outputs; returns %(NAME)s_OK%(errors)s. */
int %(prefix)s_invoke(const struct %(prefix)s_inputs *inputs, const struct %(prefix)s_outputs *outputs);
"""

_INVOKE = """\
struct %(prefix)s_inputs {
%(inputs)s};
struct %(prefix)s_outputs {
%(outputs)s};
__attribute__((visibility("default")))
int %(prefix)s_invoke(const struct %(prefix)s_inputs *inputs, const struct %(prefix)s_outputs *outputs) {
    (void)inputs, (void)outputs;
    ready(%(i)d);
%(copies_in)s    const int status = run_%(i)d();
    if (status) return status;
%(copies_out)s    return 0;
}
"""

_CHECKED = """\
__attribute__((alias("%(prefix)s_invoke"), visibility("default")))
int %(prefix)s_invoke_%(digest)s(const struct %(prefix)s_inputs *inputs, const struct %(prefix)s_outputs *outputs);
"""

_MAIN = """\
/* An example made by litecl: runs the model once on zeros, and prints the first elements of every output.
   Build it with: cc main.c %(name)s.a -lm -o main */
#include <stdio.h>

#include "%(name)s.h"

%(memory)s
int main(void) {
    const struct %(prefix)s_inputs inputs = {%(inputs)s};
    const struct %(prefix)s_outputs outputs = {%(outputs)s};
    const int status = %(prefix)s_invoke(&inputs, &outputs);
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
    keys = dict(zip(drawn.images, identifiers(drawn.images), strict=True))
    entries = [
        _Entry(i, image, check_prefix(name), f"{name}_{keys[key]}" if key else name)
        for i, (key, image) in enumerate(drawn.images.items())
    ]
    interface = "".join(entry.interface for entry in entries)
    digest = version(drawn, name, interface)
    checked = "".join(entry.checked(digest) for entry in entries)
    content, sizes = archive(objects(drawn, name, interface + checked), name, drawn.machine.compiler())
    has_states = any(image.states for image in drawn.images.values())
    header = _HEADER % {
        "model": _comment(model),
        "machine": drawn.machine.name,
        "name": name,
        "NAME": name.upper(),
        "arena_bytes": drawn.arena_bytes,
        "constant_bytes": len(drawn.constants),
        "stack_bytes": sizes.stack_bytes,
        "entries": "".join(entry.declared(digest) for entry in entries),
        "reset": "Sets all states as before the first run." if has_states else "Does nothing: the model has no states.",
    }
    return {f"{name}.h": header.encode(), f"{name}.a": sealed(content), EXAMPLE: entries[0].example.encode()}, sizes


class _Entry:
    """Image i in C. name: of the library. prefix: precedes its own names."""

    def __init__(self, i: int, image: Image, name: str, prefix: str) -> None:
        self._i, self._image, self._name, self._prefix = i, image, name, prefix
        self._of_inputs, self._of_outputs = _named(image.inputs), _named(image.outputs)

    def _macro(self, kind: str, member: str) -> str:
        return f"{self._prefix}_{kind}_{member}".upper()

    def declared(self, digest: str) -> str:
        """Return the part of the header, for the library with this digest."""
        name = self._name.upper()
        errors = f", or {name}_TOO_MANY_ITERATIONS,\n   which leaves states and outputs as they were"
        return _ENTRY % {
            "macros": self._macros(),
            "prefix": self._prefix,
            "digest": digest,
            "NAME": name,
            "inputs": self._members("INPUT", self._of_inputs, "const "),
            "outputs": self._members("OUTPUT", self._of_outputs, ""),
            "errors": errors if self._image.is_limited else "",
        }

    def _members(self, kind: str, named: Mapping[str, Port], const: str) -> str:
        return _or_unused(
            f"    {const}{_TYPES[port.spec.type]} *{member}; /* {_comment(port.name)}: {port.spec.type.name} "
            f"{[*port.spec.static_shape]}, {self._macro(kind, member)}_SIZE elements */\n"
            for member, port in named.items()
        )

    def _macros(self) -> str:
        """Return the sizes and quantizations."""
        lines = []
        for kind, named in (("INPUT", self._of_inputs), ("OUTPUT", self._of_outputs)):
            for member, port in named.items():
                macro = self._macro(kind, member)
                lines.append(f"#define {macro}_SIZE {_count(port)} /* elements */")
                if port.quantization is not None:
                    scale, zero = port.quantization
                    lines.append(f"#define {macro}_SCALE {_float(scale)} /* real = scale * (q - zero point) */")
                    lines.append(f"#define {macro}_ZERO_POINT ({zero})")
        return "".join(f"{line}\n" for line in lines)

    @property
    def interface(self) -> str:
        """The C of its function."""
        copies_in = "".join(
            f"    __builtin_memcpy(arena + {port.offset}, inputs->{member}, {port.size_bytes});\n"
            for member, port in self._of_inputs.items()
        )
        copies_out = "".join(
            f"    if (outputs->{member})\n"
            f"        __builtin_memcpy(outputs->{member}, {port.memory} + {port.offset}, {port.size_bytes});\n"
            for member, port in self._of_outputs.items()
        )
        return _INVOKE % {
            "i": self._i,
            "prefix": self._prefix,
            "inputs": _or_unused(f"    const void *{member};\n" for member in self._of_inputs),
            "outputs": _or_unused(f"    void *{member};\n" for member in self._of_outputs),
            "copies_in": copies_in,
            "copies_out": copies_out,
        }

    def checked(self, digest: str) -> str:
        """Return the C that gives its function the name by which the header calls it."""
        return _CHECKED % {"prefix": self._prefix, "digest": digest}

    @property
    def example(self) -> str:
        """The program that runs it once."""
        memory, prints = "", ""
        for kind, way, named in (("INPUT", "in", self._of_inputs), ("OUTPUT", "out", self._of_outputs)):
            for member, port in named.items():
                size = f"{self._macro(kind, member)}_SIZE"
                memory += f"static {_TYPES[port.spec.type]} {way}_{member}[{size}];\n"
                if kind == "OUTPUT":
                    prints += (
                        f'    printf("{member}:");\n    for (int i = 0; i < {size} && i < 8; ++i) '
                        f'printf(" %g", (double)out_{member}[i]);\n    printf("\\n");\n'
                    )
        return _MAIN % {
            "name": self._name,
            "NAME": self._name.upper(),
            "prefix": self._prefix,
            "memory": memory,
            "inputs": ", ".join(f".{member} = in_{member}" for member in self._of_inputs) or "0",
            "outputs": ", ".join(f".{member} = out_{member}" for member in self._of_outputs) or "0",
            "prints": prints,
        }


def _named(ports: Sequence[Port]) -> dict[str, Port]:
    return dict(zip(identifiers(port.name for port in ports), ports, strict=True))


def _or_unused(members: Iterable[str]) -> str:
    """Return the members of a structure, which C wants at least one of."""
    return "".join(members) or "    char unused;\n"


def _count(port: Port) -> int:
    return port.spec.size * (2 if port.spec.type == TensorType.COMPLEX64 else 1)


def _float(value: float) -> str:
    text = f"{value:.9g}"
    return f"{text}f" if any(c in text for c in ".en") else f"{text}.0f"


def _comment(text: str) -> str:
    """Return a text that ends no comment."""
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in text).replace("*/", "* /")
