"""What commands print with ``--json`` is as docs/schemas/ says, which says no more and no less than it."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from litecl import sample
from litecl.cli.tables import to_json
from litecl.delegate import CLDelegate, DelegationReport
from litecl.interpreter import Interpreter
from litecl.perf import peak
from litecl.report.collect import Wanted, collect
from litecl.verify.record import DeviceResult, Result
from support import schemas

_PYTHON = {"object": dict, "array": list, "string": str, "null": type(None), "boolean": bool, "integer": int}
FILES = {path.stem: json.loads(path.read_text()) for path in sorted(schemas.FOLDER.glob("*.json"))}


def faults(value: Any, schema: Any, at: str = "") -> Iterator[str]:
    """Yield where a value is not as a schema says, or has a key that the schema leaves out."""
    if "anyOf" in schema:
        found = [[*faults(value, each, at)] for each in schema["anyOf"]]
        yield from [] if any(not each for each in found) else min(found, key=len)
        return
    kinds = schema.get("type", [])
    if kinds and not any(_is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{at}: expected {kinds}, got {value!r}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: expected one of {schema['enum']}, got {value!r}"
    if isinstance(value, dict) and "properties" in schema:
        yield from (f"{at}: no {name}" for name in schema["required"] if name not in value)
        yield from (f"{at}: {name} is in no schema" for name in value if name not in schema["properties"])
        for name, inner in value.items():
            yield from faults(inner, schema["properties"].get(name, {}), f"{at}.{name}")
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from faults(inner, schema.get("additionalProperties", {}), f"{at}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from faults(inner, schema.get("items", {}), f"{at}[{number}]")


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, _PYTHON[kind]) and not (kind == "integer" and isinstance(value, bool))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sample")
    sample.write(made)
    return made


def test_every_schema_has_its_maker() -> None:
    assert FILES.keys() == schemas.RECORDS.keys() | schemas.COMMANDS.keys()
    for name, schema in FILES.items():
        assert schema["$schema"].endswith("2020-12/schema") and schema["title"], name


@pytest.mark.parametrize("name", schemas.RECORDS)
def test_a_record_has_the_schema_of_its_type(name: str) -> None:
    assert schemas.of_records()[name] == FILES[name]


@pytest.mark.parametrize("name", [name for name in schemas.COMMANDS if name != "bench"])
def test_a_command_prints_what_its_schema_says(name: str, folder: Path) -> None:
    for words in schemas.COMMANDS[name]:
        found = [*faults(schemas.printed(words, folder), FILES[name])]
        assert not found, (words, found[:5])


@pytest.mark.long
def test_a_bench_prints_what_its_schema_says(folder: Path) -> None:
    for words in schemas.COMMANDS["bench"]:
        assert not [*faults(schemas.printed(words, folder), FILES["bench"])][:5]


def test_a_delegation_report_is_as_its_schema_says(folder: Path) -> None:
    interpreter = Interpreter(folder / "model.tflite", delegates=[CLDelegate(deny_ops=["SOFTMAX"], profile=True)])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert not [*faults(json.loads(DelegationReport.of(interpreter).to_json()), FILES["delegation"])]


def test_a_report_is_as_its_schema_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "_RUNS", 1)
    made = collect(folder / "model.tflite", {}, Wanted({"deny_ops": ["SOFTMAX"]}, runs=3, cold=False))
    assert not [*faults(json.loads(to_json(asdict(made))), FILES["report"])][:5]


def test_a_verification_is_as_its_schema_says() -> None:
    made = Result({"litecl": "0"}, (DeviceResult({"name": "d"}, (), 1.0),), "litecl verify", "2026-01-01")
    assert not [*faults(json.loads(to_json(made.to_dict())), FILES["verify"])]


def test_a_wrong_document_is_found() -> None:
    error = {"schema": 1, "kind": "litecl error", "litecl": "0", "error": {"type": "A", "message": "", "notes": []}}
    assert [*faults(error, FILES["error"])] == [".error: no exit_code"]
    error["error"] = {"type": 3, "message": "", "notes": [], "exit_code": 1, "more": 2}
    assert len([*faults(error, FILES["error"])]) == 2


def test_schemas_are_valid_to_a_library_too(folder: Path) -> None:
    library = pytest.importorskip("jsonschema")
    for name, schema in FILES.items():
        library.Draft202012Validator.check_schema(schema)
        if name in schemas.COMMANDS and name != "bench":
            library.validate(schemas.printed(schemas.COMMANDS[name][0], folder), schema)


def test_the_page_of_the_command_names_them() -> None:
    told = (schemas.ROOT / "docs" / "command.md").read_text()
    assert [name for name in FILES if f"schemas/{name}.json" not in told] == []
