"""Estimates how much of a processor of ARM the inner loops of kernels use: compiled for it, and read by llvm-mca, which
knows how long each instruction takes and which units it needs, and takes memory for a first-level cache.

Usage: tools/arm_loops.py MODEL... -- COMMAND OF LLVM-MCA (`tools/arm_loops.sh` fetches a new one)
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from litecl.delegate import CLDelegate
from litecl.delegate.native import kinds, packing
from litecl.delegate.native.clang import Unit
from litecl.delegate.native.cross import compiler_for
from litecl.delegate.native.library import Libraries
from litecl.interpreter import Interpreter
from support.assembly import assembly

# Machines, with the processor that llvm-mca is to take, and how many vectors they multiply in a cycle. The core of a
# Cortex-A76 is that of a Neoverse N1, which LLVM describes. Of an M1 it knows no more than of Apple's first core of 64
# bits, which has three such units where the M1 has four.
MACHINES = {
    "aarch64-linux:cortex-a72": ("cortex-a72", 2),
    "aarch64-linux:cortex-a76": ("neoverse-n1", 2),
    "aarch64-linux:apple-m1": ("apple-m1", 3),
}
_KERNELS = {
    "gemm": "products, floats",
    "conv_2d": "convolutions, floats",
    "conv_lines": "convolutions line by line, floats",
    "depthwise_conv_2d": "depthwise, floats",
    "quantized_conv_2d": "convolutions, bytes",
    "quantized_depthwise_conv_2d": "depthwise, bytes",
}
# Multiplications of one instruction, by its name and its vectors.
_MULTIPLICATIONS = {"fmla.4s": 4, "fmul.4s": 4, "smull.8h": 8, "smull2.8h": 8, "sdot.4s": 16, "usdot.4s": 16}
_LANES = {"fmla": 4, "sdot": 16, "smull": 8}  # of the peak, by what a loop uses


@dataclass(frozen=True)
class Loop:
    """The instructions from a label to the jump back to it. multiplied: numbers, each by another one."""

    text: str
    multiplied: int
    by: str


def loops(assembly: str) -> Iterator[Loop]:
    """Yield the innermost loops that multiply vectors."""
    lines = assembly.splitlines()
    labels = {line.partition(":")[0]: i for i, line in enumerate(lines) if re.match(r"^[.\w]+:", line)}
    for end, line in enumerate(lines):
        found = re.match(r"\s+(?:b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\d+,)\s+([.\w]+)", line)
        start = labels.get(found[1], end) if found else end
        body = lines[start + 1 : end + 1]
        if start >= end or any(re.match(r"^[.L]+\w+:", each) for each in body):
            continue
        names = [name for each in body if (name := _name(each)) in _MULTIPLICATIONS]
        if names:
            multiplied = sum(_MULTIPLICATIONS[name] for name in names)
            most = max({*names}, key=names.count).partition(".")[0]
            yield Loop("\n".join(lines[start : end + 1]), multiplied, next(by for by in _LANES if by[-3:] in most))


def _name(line: str) -> str:
    """Return an instruction with the kind of its vectors, in Linux's way of writing: ``fmla.4s``."""
    found = re.match(r"\s+(\w+)(?:\.(\w+))?\s+v\d+(?:\.(\w+))?", line)
    return f"{found[1]}.{found[2] or found[3]}" if found else ""


def cycles(loop: Loop, mca: Sequence[str], processor: str) -> float:
    """Return how many cycles an iteration takes."""
    command = [*mca, "-mtriple=aarch64", f"-mcpu={processor}", "-iterations=200", "-instruction-info=false"]
    told = subprocess.run(command, input=loop.text, stdout=subprocess.PIPE, text=True, check=True).stdout
    (total,) = re.findall(r"Total Cycles:\s+(\d+)", told)
    return int(total) / 200


def units_of(machine: kinds.Machine, models: Sequence[str]) -> dict[str, list[Unit]]:
    """Return the sources of models' kernels, by kernel file."""
    found: dict[str, list[Unit]] = {}

    class Collected(Libraries):
        def content(self, units: Sequence[Unit]) -> tuple[str, bytes]:
            for unit in units:
                if unit not in found.setdefault(Path(unit.name).stem, []):
                    found[Path(unit.name).stem].append(unit)
            return "", b""

    packing.PackingFound.libraries = lambda self, directory: Collected(self.compiler, self.macros, None)  # type: ignore[method-assign]
    made_for = packing.target(machine, None)
    for model in models:
        Interpreter(model, delegates=[CLDelegate(made_for.device(1), cache_dir=None, strict=True)]).allocate_tensors()
    return found


def main(models: Sequence[str], mca: Sequence[str]) -> None:
    """Print a table of the largest loop of each kernel."""
    print("| inner loop | processor | products | cycles | a cycle | of the peak |\n|---|---|---|---|---|---|")
    for name, (processor, pipes) in MACHINES.items():
        machine = kinds.machine(name)
        units = units_of(machine, models)
        for kernel, what in _KERNELS.items():
            made = [assembly(compiler_for(machine), unit) for unit in units.get(kernel, ())]
            loop = max((loop for text in made for loop in loops(text)), key=lambda loop: loop.multiplied, default=None)
            if loop is None:
                continue
            took = cycles(loop, mca, processor)
            rate, peak = loop.multiplied / took, pipes * _LANES[loop.by]
            row = (
                what,
                machine.processor,
                f"{loop.multiplied} by {loop.by}",
                f"{took:.1f}",
                f"{rate:.1f}",
                f"{rate / peak:.0%}",
            )
            print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    separator = sys.argv.index("--")
    main(sys.argv[1:separator], sys.argv[separator + 1 :])
