"""Writes docs/runtimes.md, a summary of the table: ``python -m litecl.where.page docs/runtimes.md``."""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from litecl.where import edgetpu
from litecl.where.kinds import Kind, type_of
from litecl.where.measure import PACKAGES
from litecl.where.seen import CLOSE
from litecl.where.table import FAR, FEWEST, Record, Table, shipped

_INDICES = ("int32", "int64")
_HEAD = """\
# Where models run

`litecl where MODEL` says of every node which runtimes run it, refuse it, or compute it otherwise than litecl's
interpreter, which has the bits of LiteRT's reference kernels, by how much, and what to change. `litecl sample .` writes
the `model.tflite` of these commands.

    litecl where model.tflite
    litecl where model.tflite --runtime tflite_micro --nodes
    litecl where model.tflite --measure             # also runs the model in the runtimes that are installed
    litecl convert model.tflite -o int8.tflite --quantize integer --check vela,edgetpu,onnxruntime

| answer | meaning |
|---|---|
| same bits | every number was equal in the cases that are like the node |
| rounds, 1 step | integers differed by at most one step |
| rounds, 1e-4 | floats differed by at most this share of the largest magnitude |
| rounds, 1e-2 | the same, of float inputs and integer weights: an input halfway between two steps may go to either |
| differs, 4 steps | the difference was larger; its limit is the next power of two, or of ten for floats |
| differs, by far | by more than a tenth of the largest magnitude, or another shape, or infinities |
| runs | it runs; fewer than {fewest} numbers were compared |
| on the NPU, on the CPU | a compiler placed all cases that are like the node on its NPU, or left them to the CPU |
| refuses | all cases that are like the node raised an error, or ended the process |
| not known | no case is like it, or only some of them ran |

Cases are like a node if operator, types of all operands and results, scales (one, or one for each slice or block; the
result's equal to the operand's, or not), constants, ranks, batches of one or more, broadcasting, and options agree;
numbers among the options as 0, 1, above or below. litecl never infers an answer from a case that is not like the node,
unless the runtime says of all cases of an operator that it lacks the operator. A node is judged by itself: a runtime
that refuses one node refuses the file, and one that fuses nodes may round differently. `--measure` runs the whole model
on random inputs.

Nodes that run subgraphs (WHILE, IF, CALL_ONCE, composites), and those of resource variables, are alike if operator and
types agree. The former run where all nodes in their subgraphs do, and have the numbers of these.

litecl is litecl itself with its defaults: what its device `native` doesn't take, its interpreter runs. `litecl inspect
model.tflite --delegate` says which is which. Integers have the reference's bits; float inputs of integer weights are
quantized as in LiteRT's default.

onnxruntime runs what tf2onnx makes of a file. vela is Arm's compiler for Ethos-U NPUs, for an Ethos-U55 with 256
multiply-adds per cycle, its default. Where it places a node depends on sizes too, which the cases may not have:
`--measure` compiles the whole model.

edgetpu is the compiler of Coral's Edge TPU, by [its published list]({edgetpu}), as
it was copied on other pages, in parts in an early form; the compiler was not run. It maps nodes up to the first that it
can't map; that one and those after it run on the CPU.

`litecl verify --runtime NAME --table FILE` makes such a table, from litecl's cases of all operators, and with
`--models` from the nodes of models; `litecl where --table FILE` uses it. `litecl convert --check tflite_micro` applies
litecl's own to the file that it writes.

## Runtimes

The names are those of `--runtime`. `pip install` the package to run `--measure` on it.

"""
_MODELS = """
Besides the cases, they were given nodes of these models of public repositories:

"""
_OPERATORS = """
## The Edge TPU

| operators | limits |
|---|---|
{limits}

## Operators

By operator and types; `*` stands for a scale, `**` for a scale of each slice, `*#` for scales of blocks. A cell has the
largest difference over all options, without NaN, infinities and numbers near the limits of their type; "2 of 5 refused"
counts kinds of nodes, with other options, ranks or scales.

"""


def markdown(table: Table) -> str:
    """Return the page."""
    head = _HEAD.replace("{fewest}", f"{FEWEST:,}").replace("{edgetpu}", edgetpu.SOURCE)
    runtimes = [*_lines(("name", "package", "version", "processor", "date", "cases and nodes"), _runtimes(table))]
    names = [*table.runtimes]
    operators = [*_lines(("operator", "types", *names), _rows(table, names))]
    limits = "\n".join(f"| {', '.join(ops)} | {'; '.join(texts)} |" for texts, ops in _limits().items())
    models = "\n".join(_lines(("repository", "models"), _models(table)))
    return (
        head
        + "\n".join(runtimes)
        + "\n"
        + _MODELS
        + models
        + "\n"
        + _OPERATORS.replace("{limits}", limits)
        + "\n".join(operators)
        + "\n"
    )


def _limits() -> Mapping[tuple[str, ...], list[str]]:
    """Return the Edge TPU's operators by their limits."""
    ops: dict[tuple[str, ...], list[str]] = defaultdict(list)
    ops[edgetpu.OF_ALL] = ["all"]
    for op, texts in edgetpu.OPERATORS.items():
        ops[texts or ("none",)].append(op)
    return ops


def _lines(columns: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _runtimes(table: Table) -> Iterator[Sequence[str]]:
    packages = {module: package for each in PACKAGES.values() for module, package in each.items()}
    for r in table.runtimes.values():
        yield r.name, packages.get(r.package, r.package), r.version, r.processor, r.date, f"{r.specimens:,}"


def _models(table: Table) -> Iterator[Sequence[str]]:
    names: dict[str, list[str]] = defaultdict(list)
    for model in sorted({model for name in table.runtimes for model in table.models(name)}):
        folder, _, file = model.rpartition("/")
        names[folder].append(file)
    yield from ((folder, ", ".join(files)) for folder, files in names.items())


def _rows(table: Table, names: Sequence[str]) -> Iterator[Sequence[str]]:
    groups: dict[tuple[str, str], list[Mapping[str, Record]]] = defaultdict(list)
    for text, row in table.kinds.items():
        kind = Kind.parse(text)
        groups[kind.op, types_of(kind)].append(row)
    for (op, types), rows in sorted(groups.items(), key=lambda item: (item[0][0].upper(), item[0][1])):
        yield op, types.replace("*", "\\*"), *(_cell([row[name] for row in rows if name in row]) for name in names)


def types_of(kind: Kind) -> str:
    """Return the types of a kind's operands, without indices beside others, and of its results where they differ."""
    operands = [*dict.fromkeys(type_of(text) for text in kind.operands if text != "-")]
    main = [text for text in operands if text not in _INDICES] or operands[:1]
    results = [text for text in dict.fromkeys(map(type_of, kind.results)) if text not in main]
    return " ".join(main) + (f" -> {' '.join(results)}" if results else "")


def _cell(records: Sequence[Record]) -> str:
    if not records:
        return ""
    if any(r.npu + r.cpu for r in records):
        return _placed(records)
    refused = [r for r in records if r.refused + r.died]
    if len(refused) == len(records):
        return "refuses"
    ran = [r for r in records if not r.refused + r.died]
    text = _apart(ran)
    return f"{text}; {len(refused)} of {len(records)} refused" if refused else text


def _placed(records: Sequence[Record]) -> str:
    placed, left = sum(r.npu == r.cases for r in records), sum(r.cpu > 0 for r in records)
    if not placed:
        return "CPU"
    return f"NPU; {len(records) - placed} of {len(records)} CPU" if left else "NPU"


def _apart(records: Sequence[Record]) -> str:
    steps, relative = max(r.steps for r in records), max(r.relative for r in records)
    if any(r.wrong for r in records) or relative > FAR:
        return "differs by far"
    if relative > CLOSE:
        return f"differs, {relative:.0e}".replace("e-0", "e-")
    if steps:
        return f"{steps:,.0f} step{'s' if steps > 1 else ''}"
    if relative:
        return "rounds"
    numbers = sum(r.numbers for r in records)
    return "same" if numbers else "runs"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(markdown(shipped()))
