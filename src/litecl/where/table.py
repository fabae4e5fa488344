"""The table of what runtimes did with nodes of each kind, and what it says of a node."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from litecl.interpreter.errors import ModelError, brief
from litecl.interpreter.regular_files import open_regular
from litecl.interpreter.whole_files import put_text
from litecl.where.kinds import CALLERS, WITH_OTHERS, Kind
from litecl.where.seen import CLOSE, Seen, model_of

SCHEMA = 1
KIND = "litecl where"
FEWEST = 1000  # numbers to compare before the table says how far results may be off
FAR = 0.1  # relative difference beyond which the table sets no limit
_HALFWAY = 1e-2  # relative difference where a float halfway between two steps may be quantized to either
_MESSAGE = 160
LACKS = (
    "No translator found for ",
    "Didn't find op for builtin opcode ",
    "Encountered unresolved custom op: ",
    "No Op registered for TFL_",
)
_ALONE = "refused alone; a model may have such a tensor within, if not as its input or output"
_AT_EDGES = ("complex64", "string")  # types that a runtime may take within a model alone
_NO_RESOURCES = "Unexpected type: RESOURCE"
_AMONG_OTHERS = "refused together with others"
_INNER_NUMBERS = "its numbers are those of the nodes that it runs"
_OTHERS_ROUND = "equal in all cases, but not with other options or shapes"

SAME, ROUNDS, DIFFERS, RUNS, REFUSES, UNKNOWN = "same bits", "rounds", "differs", "runs", "refuses", "not known"
PLACED, LEFT = "on the NPU", "on the CPU"  # by a compiler
STATUSES = (SAME, ROUNDS, DIFFERS, RUNS, PLACED, LEFT, REFUSES, UNKNOWN)


@dataclass(frozen=True)
class Record:
    """What a runtime did with the cases of a kind.

    cases; refused: of these, with the first message; died: that ended the process. version: the highest that ran.
    numbers: compared, without special cases; differing: of these; steps, relative: the largest difference; wrong: cases
    with another shape, infinities or NaN, or changing results. special: cases with NaN, infinities or extreme numbers
    that differ. npu, cpu: cases that a compiler places on its NPU, and leaves to the CPU, with the first reason as
    message. nodes: the cases that were cut out of models, as MODEL#NODE.
    """

    cases: int = 0
    refused: int = 0
    died: int = 0
    message: str = ""
    version: int = 0
    numbers: int = 0
    differing: int = 0
    steps: float = 0
    relative: float = 0
    wrong: int = 0
    special: int = 0
    npu: int = 0
    cpu: int = 0
    nodes: tuple[str, ...] = ()

    def plus(self, seen: Seen, *, died: bool = False) -> "Record":
        """Return the record with another case."""
        node = (seen.name,) if model_of(seen.name) else ()
        one = replace(self, cases=self.cases + 1, nodes=self.nodes + node)
        if died:
            return replace(one, died=self.died + 1)
        if seen.refused is not None:
            one = replace(one, message=self.message or brief(seen.refused)[:_MESSAGE])
            if seen.npu is None:
                return replace(one, refused=self.refused + 1)
        one = replace(one, version=max(self.version, seen.version))
        if seen.npu is not None:
            return replace(one, npu=self.npu + seen.npu, cpu=self.cpu + (not seen.npu))
        if seen.special:
            return replace(one, special=self.special + int(seen.differing > 0 or bool(seen.wrong)))
        return replace(
            one,
            numbers=self.numbers + seen.numbers,
            differing=self.differing + seen.differing,
            steps=max(self.steps, seen.steps),
            relative=max(self.relative, float(f"{seen.relative:.1e}")),
            wrong=self.wrong + bool(seen.wrong),
        )


@dataclass(frozen=True)
class Verdict:
    """What the table says of a node on a runtime.

    status: one of the constants above. reason: of a refusal, or why it is not known. steps, relative: limits of the
    difference to litecl's interpreter, of integers and of floats; infinite where the table sets none. share: of
    differing numbers in the cases. cases: like the node.
    """

    status: str
    reason: str = ""
    steps: float = math.inf
    relative: float = math.inf
    share: float = 0.0
    cases: int = 0

    @property
    def is_run(self) -> bool:
        """Whether the runtime runs the node, a compiler on its NPU."""
        return self.status in (SAME, ROUNDS, DIFFERS, RUNS, PLACED)

    def __str__(self) -> str:
        return f"{self.status}{self._far()}" if self.status in (ROUNDS, DIFFERS) else self.status

    def _far(self) -> str:
        if math.isinf(self.steps) or math.isinf(self.relative):
            return ", by far"
        if self.steps > 1 or not self.relative:
            return f", {self.steps:.0f} step{'s' if self.steps > 1 else ''}"
        return f", {self.relative:.0e}".replace("e-0", "e-")


@dataclass(frozen=True)
class Runtime:
    """A runtime in the table. specimens: how many cases and nodes of models it was given."""

    name: str
    package: str
    version: str
    date: str
    processor: str
    specimens: int


@dataclass(frozen=True)
class Table:
    """Records by kind, then by runtime."""

    runtimes: Mapping[str, Runtime] = field(default_factory=dict)
    kinds: Mapping[str, Mapping[str, Record]] = field(default_factory=dict)

    def verdict(self, runtime: str, kind: Kind, version: int) -> Verdict:
        """Return what a runtime does with a node of this kind and version."""
        record = self.kinds.get(str(kind), {}).get(runtime)
        if record is None:
            absent = self._absent.get((runtime, kind.op))
            return Verdict(UNKNOWN, "no case is like it") if absent is None else Verdict(REFUSES, absent)
        known = verdict(record, version)
        if kind.op in WITH_OTHERS:
            return _with_others(known, kind)
        if known.status == REFUSES and any(text.startswith(_AT_EDGES) for text in (*kind.operands, *kind.results)):
            return replace(known, status=UNKNOWN, reason=f"{_ALONE}: {known.reason}")
        if known.status == SAME and (runtime, kind.types) in self._rounding:
            floats = [text.startswith(("float", "bfloat", "complex")) for text in kind.results]
            steps, relative = 0.0 if all(floats) else 1.0, CLOSE if any(floats) else 0.0
            known = replace(known, status=ROUNDS, reason=_OTHERS_ROUND, steps=steps, relative=relative)
        if known.status in (ROUNDS, DIFFERS) and kind.is_hybrid:  # cases rarely have such a float
            return replace(known, relative=max(known.relative, _HALFWAY))
        return known

    @cached_property
    def _absent(self) -> Mapping[tuple[str, str], str]:
        """The message of runtimes and operators of which the runtime says, of every kind, that it has none."""
        messages: dict[tuple[str, str], str] = {}
        for kind, row in self.kinds.items():
            for name, record in row.items():
                key = name, kind.partition(" ")[0]
                lacks = record.refused == record.cases and is_lacked(record.message, Kind.parse(kind))
                messages[key] = record.message if lacks and messages.get(key, record.message) else ""
        return {key: message for key, message in messages.items() if message}

    @cached_property
    def _rounding(self) -> frozenset[tuple[str, str]]:
        """The runtimes and types for which some kind of node rounds otherwise: then no kind is the same for sure."""
        return frozenset(
            (name, Kind.parse(kind).types)
            for kind, row in self.kinds.items()
            for name, record in row.items()
            if record.differing
        )

    def models(self, runtime: str) -> list[str]:
        """Return the models whose nodes a runtime was given."""
        nodes = (node for row in self.kinds.values() if runtime in row for node in row[runtime].nodes)
        return sorted({*map(model_of, nodes)})

    def with_runtime(self, runtime: Runtime, records: Mapping[str, Record]) -> "Table":
        """Return the table with a runtime's records, which replace those that it has."""
        kinds = {kind: {n: r for n, r in row.items() if n != runtime.name} for kind, row in self.kinds.items()}
        for kind, record in records.items():
            kinds.setdefault(kind, {})[runtime.name] = record
        kept = {kind: row for kind, row in sorted(kinds.items()) if row}
        return Table({**self.runtimes, runtime.name: runtime}, kept)


def verdict(record: Record, version: int) -> Verdict:
    """Return what a record says of a node of this version."""
    stopped = record.refused + record.died
    if stopped:
        reason = record.message or "its process ends"
        if stopped == record.cases:
            return Verdict(REFUSES, reason, cases=record.cases)
        return Verdict(UNKNOWN, f"{stopped} of {record.cases} cases like it are refused: {reason}", cases=record.cases)
    if version > record.version:
        return Verdict(UNKNOWN, f"only version {record.version} and below were run", cases=record.cases)
    if record.npu or record.cpu:
        if not record.npu:
            return Verdict(LEFT, record.message, cases=record.cases)
        if not record.cpu:
            return Verdict(PLACED, cases=record.cases)
        reason = f"{record.cpu} of {record.cases} cases like it are left to the CPU: {record.message}"
        return Verdict(UNKNOWN, reason, cases=record.cases)
    share = record.differing / record.numbers if record.numbers else 0.0
    if record.wrong:
        return Verdict(DIFFERS, f"{record.wrong} of {record.cases} cases are wrong", share=share, cases=record.cases)
    if record.numbers < FEWEST:
        seen = "all equal" if not record.differing else f"{record.differing} differ"
        return Verdict(RUNS, f"only {record.numbers} numbers compared, {seen}", share=share, cases=record.cases)
    if not record.differing:
        return Verdict(SAME, steps=0, relative=0, cases=record.cases)
    steps, relative = _up(record.steps), _limit(record.relative)
    status = ROUNDS if steps <= 1 and relative <= CLOSE else DIFFERS
    return Verdict(status, "", steps, relative, share, record.cases)


def _with_others(known: Verdict, kind: Kind) -> Verdict:
    """Return the verdict on an operator that ran, or was refused, together with others."""
    if known.status == REFUSES and not is_lacked(known.reason, kind):
        return Verdict(UNKNOWN, f"{_AMONG_OTHERS}: {known.reason}", cases=known.cases)
    if kind.op in CALLERS and known.is_run and not math.isinf(known.relative):
        return Verdict(RUNS, _INNER_NUMBERS, cases=known.cases)
    return known


def is_lacked(message: str, kind: Kind) -> bool:
    """Return whether a runtime says with this message that it doesn't have an operator, or no resource variables."""
    no_resources = message == _NO_RESOURCES and "resource" in (*kind.operands, *kind.results)
    return no_resources or (message.startswith(LACKS) and kind.op in message)


def _up(steps: float) -> float:
    """Return the next power of two."""
    return 0 if steps <= 0 else 2.0 ** math.ceil(math.log2(steps))


def _limit(relative: float) -> float:
    """Return the next power of ten."""
    if relative > FAR:
        return math.inf
    return 0.0 if relative <= 0 else max(CLOSE, 10.0 ** math.ceil(math.log10(relative)))


def recorded(seen: Iterable[tuple[Seen, bool]]) -> dict[str, Record]:
    """Return the records of what a runtime did: each case, and whether it ended the process."""
    records: dict[str, Record] = {}
    for one, died in seen:
        records[one.kind] = records.get(one.kind, Record()).plus(one, died=died)
    return records


def write(table: Table, path: Path) -> None:
    """Write a table, one kind a line."""
    records = [record for row in table.kinds.values() for record in row.values()]
    texts = {
        "messages": [*dict.fromkeys(r.message for r in records)],
        "nodes": [*dict.fromkeys(node for r in records for node in r.nodes)],
    }
    head = {"schema": SCHEMA, "kind": KIND, "runtimes": [asdict(r) for r in table.runtimes.values()], **texts}
    lines = [
        f"{json.dumps(kind)}: {json.dumps(_row(row, [*table.runtimes], **texts), separators=(',', ':'))}"
        for kind, row in table.kinds.items()
    ]
    text = json.dumps(head, indent=1)[:-2] + ',\n "kinds": {\n' + ",\n".join(lines) + "\n}}\n"
    put_text(path, text)


def _row(row: Mapping[str, Record], names: list[str], messages: list[str], nodes: list[str]) -> dict[str, list[Any]]:
    """Return records as lists of their fields without what is 0 or empty at the end, by the position of their runtime;
    messages and nodes by theirs.
    """
    data = {}
    for name, record in row.items():
        values = [getattr(record, f.name) for f in fields(record)]
        values[3], values[-1] = messages.index(record.message), [nodes.index(node) for node in record.nodes]
        values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
        while not values[-1]:
            values.pop()
        data[str(names.index(name))] = values
    return data


def read(path: Path) -> Table:
    """Read a table. Raises ModelError for another file, OSError for a pipe or a device too."""
    with open_regular(path) as file:
        return parse(file.read(), str(path))


@cache
def shipped() -> Table:
    """Return the table of the package."""
    return parse(files("litecl.where").joinpath("table.json").read_text(), "table.json")


def parse(text: str | bytes, name: str) -> Table:
    """Return the table that ``write`` has written as ``text``. Raises ModelError, naming ``name``, for another text."""
    try:
        data = json.loads(text)
        if (data["kind"], data["schema"]) != (KIND, SCHEMA):
            raise ModelError(f"{name}: expected a table of {KIND}, schema {SCHEMA}")
        runtimes = [Runtime(**r) for r in data["runtimes"]]
        kinds = {
            kind: {runtimes[int(i)].name: _record(values, data) for i, values in row.items()}
            for kind, row in data["kinds"].items()
        }
        return Table({r.name: r for r in runtimes}, kinds)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        fault = f"{type(error).__name__}: {brief(str(error))}"
        raise ModelError(f"{name}: expected a table of {KIND}, got another file ({fault})") from error


def _record(values: list[Any], texts: Mapping[str, list[str]]) -> Record:
    names = [f.name for f in fields(Record)]
    given = dict(zip(names, values, strict=False))
    nodes = tuple(texts["nodes"][i] for i in given.get("nodes", ()))
    return Record(**{**given, "message": texts["messages"][given.get("message", 0)], "nodes": nodes})


def kinds_of(table: Table, op: str) -> Iterator[tuple[Kind, Mapping[str, Record]]]:
    """Yield the kinds of an operator with their records."""
    for text, row in table.kinds.items():
        if text.startswith(f"{op} "):
            yield Kind.parse(text), row
