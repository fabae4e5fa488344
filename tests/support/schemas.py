"""JSON schemas of what commands print with ``--json``; tools/schemas.py writes them into docs/schemas/.

Those of records follow from their types, others from what the commands print of the sample.
"""

import json
import types
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import fields, is_dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from litecl.cli import main
from litecl.delegate.report import DelegationReport
from litecl.perf.bench import Comparison
from litecl.perf.contenders import Refusal
from litecl.report.document import Report
from litecl.verify.record import Result

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "schemas"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SIMPLE = {str: "string", bool: "boolean", int: "integer", type(None): "null"}
_RECORDS_BY_NAME: Mapping[str, Any] = {
    "comparisons": tuple[Comparison, ...],
    "refusals": tuple[Refusal, ...],
    "fastest": Comparison | None,
}
_BY_NAME = (
    *("packages", "variables", "operators", "tensors", "composites", "passes", "phases", "options"),
    *("only_a", "only_b", "counts"),
)
"""Keys of objects by name of something: of a package, an operator, a pass."""
Schema = dict[str, Any]

RECORDS: Mapping[str, tuple[type, str]] = {
    "delegation": (DelegationReport, "DelegationReport.to_json(), and `delegation` of `litecl run --json`"),
    "report": (Report, "litecl report -o FILE.json"),
    "verify": (Result, "litecl verify --json"),
}
_MODEL, _IMAGE, _DATA = "{folder}/model.tflite", "{folder}/image.npy", "{folder}/images.npz"
COMMANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "bench": (
        ("bench", _MODEL, "--seconds", "0.05", "--cpu"),
        ("bench", _MODEL, "--seconds", "0.05", "--profile", "--against", "litert"),
    ),
    "bisect": (("bisect", _MODEL),),
    "cache": (("cache",),),
    "compile": (("compile", _MODEL, "--cache", "{folder}/programs"),),
    "convert": (("convert", _MODEL, "-o", "{folder}/int8.tflite", "--quantize", "int8"),),
    "devices": (("devices",),),
    "diff": (("diff", _MODEL, _MODEL),),
    "error": (("run", "{folder}/missing.tflite"), ("run", "--no-such-flag")),
    "inspect": (("inspect", _MODEL), ("inspect", _MODEL, "--nodes", "--tensors", "--delegate")),
    "run": (("run", _MODEL, "--cpu"), ("run", _MODEL, "--input", _IMAGE, "--top", "2", "-o", "{folder}/out")),
    "sample": (("sample", "{folder}/again"),),
    "trace": (("trace", _MODEL, "--runs", "1", "-o", "{folder}/trace.json"),),
}
"""Commands of each schema; one is enough for a test, several show what may be missing."""


def of_type(kind: Any) -> Schema:
    """Return the schema of a type, as ``litecl.cli.tables.to_json`` writes it: numbers that are not finite are null."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_type(each) for each in args]}
    if origin is Literal:
        return {"enum": [*args]}
    if kind is float:
        return {"type": ["number", "null"]}
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        properties = {each.name: of_type(hints[each.name]) for each in fields(kind)}  # type: ignore[arg-type]
        return {"type": "object", "properties": properties, "required": [*properties]}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": of_type(args[1])}
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return {"type": "array", "items": of_type(args[0])}
    return {}


def of_values(values: list[Any]) -> Schema:
    """Return the schema of which values are examples."""
    kinds = {_kind(value) for value in values}
    if "number" in kinds:  # which is null where it is not finite, and may have no fraction
        kinds = kinds - {"integer"} | {"null"}
    made: Schema = {"type": sorted(kinds) if len(kinds) > 1 else next(iter(kinds), "null")}
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        names = dict.fromkeys(name for each in objects for name in each)
        made["properties"] = {name: _under(name, [each[name] for each in objects if name in each]) for name in names}
        made["required"] = [name for name in names if all(name in each for each in objects)]
    if elements := [each for value in values if isinstance(value, list) for each in value]:
        made["items"] = of_values(elements)
    return made


def _under(name: str, values: list[Any]) -> Schema:
    """Return the schema of what is under a key: of the keys of ``_BY_NAME``, objects whose own keys are data."""
    if name in _RECORDS_BY_NAME:
        return of_type(_RECORDS_BY_NAME[name])
    if name == "delegation":
        return {"anyOf": [{"type": "null"}, delegation()]}
    objects = [value for value in values if isinstance(value, dict)]
    if name not in _BY_NAME or len(objects) < len(values):
        return of_values(values)
    inner = [each for value in objects for each in value.values()]
    return {"type": "object", "additionalProperties": of_values(inner) if inner and name != "options" else {}}


def delegation() -> Schema:
    """Return the schema of ``DelegationReport.to_json``."""
    made = of_type(DelegationReport)
    properties = made["properties"]
    properties["warnings"] = of_type(tuple[str, ...])
    del properties["counters"]["properties"]["invocation"]
    properties["counters"]["required"].remove("invocation")
    return made


def _kind(value: Any) -> str:
    return {float: "number", dict: "object", list: "array"}.get(type(value)) or _SIMPLE[type(value)]


def printed(words: Iterable[str], folder: Path) -> Any:
    """Return what a command prints with ``--json``."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()), suppress(SystemExit):  # of wrong usage
        main([*(word.format(folder=folder) for word in words), "--json"])
    return json.loads(out.getvalue())


def of_records() -> dict[str, Schema]:
    """Return the schemas that follow from types alone, by name."""
    made = {name: {"$schema": _DRAFT} | of_type(record) | {"title": told} for name, (record, told) in RECORDS.items()}
    made["delegation"] |= delegation()
    made["verify"]["properties"] |= {"schema": {"type": "integer"}, "kind": {"type": "string"}}
    return made


def schemas(folder: Path) -> dict[str, Schema]:
    """Return all schemas by name. folder: of the sample, to which commands write."""
    made = of_records()
    for name, commands in COMMANDS.items():
        found = of_values([printed(words, folder) for words in commands])
        title = "a command that fails" if name == "error" else f"litecl {name} --json"
        made[name] = {"$schema": _DRAFT} | found | {"title": title}
    run = made["run"]["properties"]
    run["outputs"]["items"]["properties"]["first"]["items"] = {"type": ["boolean", "null", "number", "string"]}
    return made
