"""Documents and strings that users read are plain English: the rules below, which CONTRIBUTING.md names.

Read are the documents, the help of the command, the report's words, and in all modules the texts of errors, warnings,
refusals and the log.
"""

import argparse
import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from litecl.cli.parser import helps, parser

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = tuple(
    path.relative_to(ROOT).as_posix()
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.ipynb")])
)
ROOMS = ("converter", "delegate", "interpreter", "perf", "src/litecl")
READ_BY_USERS = (
    "delegate/report*.py",
    "src/litecl/report/*.py",
    "src/litecl/report/*/*.py",
    "src/litecl/cli/*.py",
    "src/litecl/cli/commands/*.py",
)  # all their strings
SPEAKING = re.compile(r"Error|Found|Exception|Unsupported|Warning|Refusal|warn|warning|info|error|debug|fail")

# A pattern, and how to write it instead.
RULES = (
    (r"\b(?:What|Whether|That which)\b(?! is\b.*\?)", "begin with the actor or the thing"),
    (r"^(?:what|whether|that which) ", "begin with a noun or a verb"),
    (
        r"\bof (?:an? |the )?[\w.]+'s(?: own)?(?=[.,;:)]|$| (?:that|which|is|are|in|on|by|for|from|to|with)\b)",
        "X's ...",
    ),
    (r"\b(?!nothing)\w+ of (?:yours|ours|theirs)\b", "your ..."),
    (r"\bso many\b", "as many, N"),
    (r"\botherwise than\b", "differently from"),
    (r"\bwhich of (?:the|these|them|its)\b[^.]*\b(?:is|are)\b", "the default ..., the fastest ..."),
    (r"\brather one with\b", "prefers"),
    (r"\bUnasked\b|\bunasked\b", "by default"),
    (r"\bcomes? along\b", "is included"),
    (r"\bbroken off\b|\bbreaks? off\b|\bgo(?:es)? on where\b", "interrupted, resume"),
    (r"\b(?:deals?|dealt) (?:\w+ )?out\b", "distribute"),
    (r"\bneed not be there\b|\bnot there\b", "that you don't have, does not exist"),
    (r"\bthere is to tell\b|\bto be told\b|\btells of\b|\btold of\b", "everything; reports"),
    (r"\bhears? of\b|\bheard of\b", "does not interrupt"),
    (r"\bhave a look\b|\blooked at before\b", "checks ahead"),
    (r"\bthan that of\b.*\bthan that of\b", "one comparison a sentence"),
    (r"\bwithout a word\b", "silently"),
    (r"\bat whose\b|\bwhosever\b", "recast"),
)


def _broken(text: str) -> list[str]:
    """Return each passage that breaks a rule, with advice."""
    found = ((re.search(pattern, text, re.MULTILINE), advice) for pattern, advice in RULES)
    return [f"{text[max(hit.start() - 40, 0) : hit.end() + 40]!r}: {advice}" for hit, advice in found if hit]


def _prose(document: str) -> Iterator[str]:
    """Paragraphs, list items and table cells, each as one line; Python in fences and lines of commands are kept too."""
    text = (ROOT / document).read_text()
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?)", text):
        yield from re.sub(r"\s+", " ", re.sub(r"^\s*(?:[-*#]+|\d+\.)\s+|\*\*", "", block)).split("|")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_is_plain_english(document: str) -> None:
    assert not [told for text in _prose(document) for told in _broken(text.strip())]


def _helps(one: argparse.ArgumentParser) -> Iterator[str]:
    yield from (text for text in (one.description, one.epilog) if text)
    yield from (group.description for group in one._action_groups if group.description)
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (choice.help or "" for choice in action._choices_actions)
            for command in {id(command): command for command in action.choices.values()}.values():
                yield from _helps(command)
        elif action.help and action.help != argparse.SUPPRESS:
            yield action.help


def test_the_help_of_the_command_is_plain_english() -> None:
    commands = {name: import_module(f"litecl.cli.commands.{name}") for name in helps()}
    texts = [*_helps(parser(commands))]
    assert len(texts) > 100
    assert not [told for text in texts for told in _broken(text)]


def _name(call: ast.expr) -> str:
    return call.attr if isinstance(call, ast.Attribute) else call.id if isinstance(call, ast.Name) else ""


def _text(node: ast.expr) -> str | None:
    """Return a string with its fields as ``...``; None for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "..." for part in node.values)  # type: ignore[misc]
    return None


def _spoken(path: Path) -> Iterator[tuple[int, str]]:
    """Lines and texts that a module says: arguments of errors, warnings, refusals and the log, or all its strings."""
    tree = ast.parse(path.read_text())
    every = any(path.relative_to(ROOT).match(pattern) for pattern in READ_BY_USERS)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if every and isinstance(node, ast.expr) and id(node) not in documented and (text := _text(node)):
            yield node.lineno, text
        elif isinstance(node, ast.Call) and SPEAKING.search(_name(node.func)):
            yield from (
                (part.lineno, text)
                for argument in node.args
                for part in ast.walk(argument)
                if isinstance(part, ast.expr) and (text := _text(part))
            )


@pytest.mark.parametrize("room", ROOMS)
def test_errors_warnings_and_reports_are_plain_english(room: str) -> None:
    spoken = [(path, line, text) for path in sorted((ROOT / room).rglob("*.py")) for line, text in _spoken(path)]
    assert len(spoken) > 25
    broken = [(path, line, told) for path, line, text in spoken for told in _broken(text)]
    assert not [f"{path.relative_to(ROOT)}:{line}: {told}" for path, line, told in broken]


@pytest.mark.parametrize(
    "text",
    [
        "What a device can do is probed.",
        "whether a file is there",
        "It is a property of the user's.",
        "a kernel of yours",
        "It rounds otherwise than LiteRT.",
        "an option that no kernel hears of",
        "It tells which of them is the fastest.",
    ],
)
def test_the_rules_find_their_faults(text: str) -> None:
    assert _broken(text)


@pytest.mark.parametrize(
    "text", ["LiteRT's kernels round differently.", "the lines of the user's code", "a set of rules"]
)
def test_the_rules_let_plain_sentences_pass(text: str) -> None:
    assert not _broken(text)


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_begin_with_a_noun_or_a_verb(room: str) -> None:
    """Only the first rule: within a docstring ``whether`` tells of a flag."""
    pattern, _ = RULES[0]
    documented = (ast.ClassDef, ast.FunctionDef, ast.Module)
    broken = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {' '.join(text.split())[:80]}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, documented) and (text := ast.get_docstring(node)) and re.search(pattern, text)
    ]
    assert not broken
