"""The documents are right about the lists, commands, files and examples that they name."""

import re
from pathlib import Path

import ai_edge_litert
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl.cli import main
from litecl.cli.parser import helps
from litecl.interpreter.file.tables import BUILTIN_OPERATORS
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, Node, Subgraph, TensorSpec
from litecl.interpreter.ops import BUILTINS
from litecl.interpreter.options import RawOptions, unknown_op
from litecl.interpreter.schema import TensorType
from litecl.verify import coverage
from litecl.verify.in_tflite import CUSTOM_IN_TFLITE, NOT_IN_TFLITE
from support import oracle

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
]


def _text(document: str) -> str:
    return (ROOT / document).read_text()


def test_the_site_names_every_document() -> None:
    """One that its navigation leaves out is a warning, which fails `make docs`."""
    named = re.findall(r"^ +- (?:\w+: )?([\w/]+\.md)$", _text("mkdocs.yml"), re.MULTILINE)
    documents = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(documents - {*named}) == []
    assert sorted({*named} - documents) == ["changelog.md", "contributing.md", "index.md", "security.md"]


def test_the_table_of_operators_is_up_to_date() -> None:
    expected = coverage.markdown(coverage.rows())
    assert _text("docs/operators.md") == expected, "write it anew: litecl coverage --output docs/operators.md"


def _is_in_litert(name: str, version: int) -> bool:
    """Return whether LiteRT finds a kernel when it loads a model, before it looks at options and operands."""
    node = Node(unknown_op(name, False), (0,), (1,), RawOptions(), (), version)
    tensors = (TensorSpec(TensorType.FLOAT32, (1,), "x"), TensorSpec(TensorType.FLOAT32, (1,), "y"))
    content = write(Model((Subgraph(tensors, (0,), (1,), (node,)),)))
    try:
        LiteRT(model_content=content, experimental_op_resolver_type=oracle.WITH_OPTIMISED_KERNELS)
    except ValueError as error:
        return "Didn't find op" not in str(error)
    return True


_OPERATORS = [
    name for name in BUILTIN_OPERATORS if name not in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES")
]


def test_litert_has_the_operators_that_the_table_says_it_has() -> None:
    for name in _OPERATORS:
        first = 2 if name == "BROADCAST_TO" else 1
        assert _is_in_litert(name, first) == (name not in NOT_IN_TFLITE), name


def test_every_version_that_litert_has_is_known() -> None:
    unknown = [
        (name, version)
        for name in _OPERATORS
        if name in BUILTINS
        for version in range(1, BUILTINS[name].versions[-1] + 12)
        if version not in BUILTINS[name].versions and _is_in_litert(name, version)
    ]
    assert unknown == []


def test_litert_has_no_custom_operators_but_those_that_the_table_knows() -> None:
    """Its library names the functions that register them, and XNNPACK's kernel of moe."""
    library = Path(ai_edge_litert.__file__).parent / "libpywrap_litert_common.so"
    symbols = library.read_bytes() if library.exists() else b""
    found = {name.decode() for name in re.findall(rb"_ZN6tflite3ops6custom\d+Register_([A-Z_]+)Ev\0", symbols)}
    if not found:
        pytest.skip("this LiteRT's library has no symbols")
    known = {"AUDIO_SPECTROGRAM", "DETECTION_POSTPROCESS", "HADAMARD_ROTATION", "MFCC", "NUMERIC_VERIFY"}
    of_language_models = {"SDPA", "KV_CACHE", "EXTERNAL_KV_CACHE"}
    assert found - {"NUMERIC_VERIFY_REF", "NUMERIC_VERIFY_OPT"} == known | of_language_models
    assert b"kMoeCustomOp" in symbols
    assert len(CUSTOM_IN_TFLITE) == len(known | of_language_models | {"moe"})
    assert len([name for name in coverage.missing() if name.startswith("odml.")]) == len(of_language_models)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_that_are_named_exist(document: str) -> None:
    text = _text(document)
    links = [target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith("http")]
    assert not [link for link in links if not (ROOT / document).parent.joinpath(link.partition("#")[0]).exists()]
    folders = "interpreter|delegate|kernels_cl|converter|perf|tests|docs|src"
    named = re.findall(rf"`((?:{folders})/[\w./]*)`", text)
    assert not [name for name in named if not (ROOT / name).exists()]


@pytest.mark.parametrize(
    "document",
    ["README.md", "docs/bisect.md", "docs/command.md", "docs/reports.md", "docs/scaling.md", "docs/verify.md"],
)
def test_commands_that_are_named_exist(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    for line in re.findall(r"^    litecl (.+)$", _text(document), re.M):
        command, *rest = line.partition("#")[0].split()
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0
        options = re.findall(r"--[a-z-]+", " ".join(rest))
        help_ = capsys.readouterr().out
        assert not [option for option in options if option not in help_]


def test_the_page_of_the_command_names_every_subcommand() -> None:
    named = {line.split()[1] for line in _text("docs/command.md").splitlines() if line.startswith("    litecl ")}
    assert named == {*helps()}
