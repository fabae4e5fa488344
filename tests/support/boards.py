"""Exported models on boards that qemu emulates: programs without a system, which print by semihosting."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litecl.delegate.export.c_program import c_files
from litecl.delegate.export.draft import draft
from litecl.delegate.export.machines import export_machine
from litecl.delegate.native import compiler
from litecl.interpreter.graph import Array
from support.exported import RESET, Step, arrays, content_of

_START = """
extern unsigned stack_top[];
int main(void);
static void semihost(int what, const void *of) {
    __asm__ volatile("mov r0, %0\\n mov r1, %1\\n bkpt 0xab" : : "r"(what), "r"(of) : "r0", "r1", "memory");
}
void print(const char *text) { semihost(4, text); }
unsigned ticks(unsigned since) { return (0xffffff - *(volatile unsigned *)0xE000E018 - since) & 0xffffff; }
static void leave(void) { semihost(0x18, (void *)0x20026); }
static void fault(void) {
    print("fault");
    leave();
}
void start(void) {
    *(volatile unsigned *)0xE000ED88 |= 0xf << 20; /* the floating-point unit */
    __asm__ volatile("dsb\\n isb");
    *(volatile unsigned *)0xE000E014 = 0xffffff;
    *(volatile unsigned *)0xE000E018 = 0;
    *(volatile unsigned *)0xE000E010 = 5; /* on, at the processor's clock */
    main();
    leave();
}
__attribute__((section(".start"), used)) void *const vectors[] = {stack_top, start, fault, fault, fault, fault, fault};
"""

_START_RISCV = """
int main(void);
static void semihost(int what, const void *of) {
    register int a0 __asm__("a0") = what;
    register const void *a1 __asm__("a1") = of;
    __asm__ volatile(".option push\\n .option norvc\\n .balign 16\\n"
                     "slli x0, x0, 0x1f\\n ebreak\\n srai x0, x0, 7\\n .option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
}
void print(const char *text) { semihost(4, text); }
unsigned ticks(unsigned since) {
    unsigned count;
    __asm__ volatile("csrr %0, minstret" : "=r"(count));
    return count - since;
}
void begin(void) {
    main();
    semihost(0x18, (void *)0x20026);
}
__attribute__((section(".start"), used, naked)) void start(void) { __asm__("la sp, stack_top\\n j begin"); }
"""

_LAYOUT = """
MEMORY {{ code (rx) : ORIGIN = {code}, LENGTH = {code_bytes}  data (rw) : ORIGIN = {data}, LENGTH = {data_bytes} }}
SECTIONS {{
    .text : {{ KEEP(*(.start)) *(.text*) *(.rodata*) *(.srodata*) }} > code
    .data : {{ *(.data*) *(.sdata*) }} > data
    .bss : {{ *(.bss*) *(.sbss*) *(COMMON) }} > data
    stack_top = ORIGIN(data) + LENGTH(data);
    stack_low = stack_top - 16384;
    /DISCARD/ : {{ *(.ARM.exidx*) *(.ARM.extab*) *(.eh_frame*) }}
}}
"""

_MAIN = """
#include "model.h"
#define NULL ((void *)0)
void print(const char *);
unsigned ticks(unsigned since);
{inputs}
{outputs}
static void show(const unsigned char *bytes, unsigned count) {{
    for (unsigned i = 0; i < count; ++i) {{
        const char text[] = {{"0123456789abcdef"[bytes[i] >> 4], "0123456789abcdef"[bytes[i] & 15], 0}};
        print(text);
    }}
}}
extern unsigned char stack_low[];
int main(void) {{
    /* A call may take less of the stack than the header says: what lies below main's frame is checked. */
    volatile unsigned char *const here = __builtin_frame_address(0), *low = stack_low;
    for (volatile unsigned char *at = low; at < here - 256; ++at) *at = 0xa5;
{steps}
    while (*low == 0xa5) ++low;
    const unsigned used = here - 256 - low;
    print(used <= MODEL_STACK_BYTES ? "stack: right" : "stack: more");
    return 0;
}}
"""


@dataclass(frozen=True)
class Board:
    """A machine of qemu's. machine: to export for. target: zig's name of it. code, data: address and size of memory.
    instructions_per_tick: of its clock, if each takes a nanosecond.
    """

    machine: str
    command: tuple[str, ...]
    target: tuple[str, ...]
    start: str
    code: tuple[str, str]
    data: tuple[str, str]
    instructions_per_tick: float

    @property
    def is_here(self) -> bool:
        return shutil.which(self.command[0]) is not None


_ARM = "qemu-system-arm", "-M"
BOARDS = (
    Board(
        "cortex-m4",
        (*_ARM, "mps2-an386"),
        ("thumb-freestanding-eabihf", "-mcpu=cortex_m4"),
        _START,
        ("0", "4M"),
        ("0x20000000", "4M"),
        1e9 / 25e6,
    ),
    Board(
        "cortex-m55",
        (*_ARM, "mps3-an547"),
        ("thumb-freestanding-eabihf", "-mcpu=cortex_m55"),
        _START,
        ("0", "512K"),  # larger models do not fit
        ("0x21000000", "2M"),
        1e9 / 32e6,
    ),
    Board(
        "riscv32imc",
        ("qemu-system-riscv32", "-bios", "none", "-M", "virt"),
        ("riscv32-freestanding", "-mcpu=baseline_rv32-d-f"),
        _START_RISCV,
        ("0x80000000", "4M"),
        ("0x80400000", "4M"),
        1,
    ),
)


class BoardProgram:
    """A model exported for a board. instructions: of every run, after ``run``."""

    instructions: Sequence[int] = ()

    def __init__(self, model: Any, board: Board, folder: Path, **given: Any) -> None:
        self.model, self.board, self.folder = model, board, folder
        self.drawn = draft(model, export_machine(board.machine), **given)
        self.images = self.drawn.images
        self.files, self.sizes = c_files(self.drawn, "test.tflite", "model")
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        (folder / "start.c").write_text(board.start)
        (folder / "layout.ld").write_text(
            _LAYOUT.format(code=board.code[0], code_bytes=board.code[1], data=board.data[0], data_bytes=board.data[1])
        )

    def run(self, steps: Sequence[Step]) -> list[tuple[int, list[Array]]]:
        """See ``CProgram.run``; inputs are part of the program."""
        (self.folder / "steps.c").write_text(self._program(steps))
        found = compiler.found()
        assert found is not None
        sources = [str(self.folder / name) for name in ("start.c", "steps.c", "model.a")]
        link = ("-T", str(self.folder / "layout.ld"), "-Wl,-e,start", "-o", str(self.folder / "board.elf"))
        options = ("-O1", "-ffreestanding", f"-I{self.folder}")
        subprocess.run((found.command[0], "cc", "-target", *self.board.target, *options, *sources, *link), check=True)
        # An instruction then takes a nanosecond.
        emulated = (*self.board.command, "-nographic", "-icount", "shift=0")
        emulated += "-semihosting-config", "enable=on,target=native", "-kernel"
        done = subprocess.run(
            (*emulated, str(self.folder / "board.elf")), capture_output=True, timeout=100, check=False
        )
        lines = (done.stderr + done.stdout).decode().split()
        assert lines[-2:] == ["stack:", "right"], lines
        contents = [bytes.fromhex(line) for line in lines[:-2]]
        counts = [int.from_bytes(content[:4], "little") for content in contents]
        self.instructions = [round(count * self.board.instructions_per_tick) for count in counts]
        results = [(content[4], arrays(self.images[""].outputs, content, 5)) for content in contents]
        assert len(results) == len([step for step in steps if not isinstance(step, str)]), lines
        return results

    def _program(self, steps: Sequence[Step]) -> str:
        inputs, calls = [], []
        image = self.images[""]
        outputs = [
            f"static _Alignas(8) unsigned char out_{i}[{port.size_bytes}];" for i, port in enumerate(image.outputs)
        ]
        places = ", ".join(f"(void *)out_{i}" for i in range(len(image.outputs))) or "0"
        for number, step in enumerate(steps):
            if isinstance(step, str):
                assert step == RESET
                calls.append("    model_reset();")
                continue
            names = []
            for i, port in enumerate(image.inputs):
                content = content_of(step[1][port.name], port)
                names.append(f"in_{number}_{i}")
                inputs.append(
                    f"static const _Alignas(8) unsigned char {names[-1]}[] = {{{', '.join(map(str, content))}}};"
                )
            given = ", ".join(f"(void *){name}" for name in names) or "0"
            calls += [
                f"    {{\n        const struct model_inputs inputs = {{{given}}};",
                f"        const struct model_outputs outputs = {{{places}}};",
                "        const unsigned before = ticks(0);",
                "        const unsigned char status = model_invoke(&inputs, &outputs);",
                "        const unsigned count = ticks(before);",
                "        show((const void *)&count, sizeof count);\n        show(&status, 1);",
            ]
            calls += [f"        show(out_{i}, sizeof out_{i});" for i in range(len(image.outputs))]
            calls.append('        print("\\n");\n    }')
        return _MAIN.format(inputs="\n".join(inputs), outputs="\n".join(outputs), steps="\n".join(calls))
