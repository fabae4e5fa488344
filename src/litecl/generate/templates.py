"""Chat templates: Jinja templates from model files, rendered in a sandbox with a limit on their work.

A file's template is a stranger's program. Jinja's sandbox keeps it from reaching Python's objects. The budget here ends
loops, recursion and values that grow without end: jinja2 has no such limit.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import wraps
from math import prod
from typing import Any, NoReturn

from jinja2 import TemplateError, TemplateSyntaxError, nodes, pass_context
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.utils import Cycler, Joiner, Namespace
from jinja2.visitor import NodeTransformer

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, brief

_MOST_SOURCE = 1 << 20  # characters of a template
_BUDGET = 1 << 27  # characters that one rendering may make; what holds elements counts too
_TIME_S = 5.0  # that one rendering may take
_ELEMENT = 32  # the cost of an element, in characters
_MOST_BITS = 4096  # of an integer
_INTERCEPTED = ("*", "**", "+", "%", "//", "/", "-")
_SLOW = ("urlize", "striptags", "wordwrap", "xmlattr", "pprint", "random")  # filters that no prompt needs
_NESTED = (list, tuple, Mapping)


class _OverBudget(Exception):
    """The template takes too much time or memory."""


@dataclass
class _Budget:
    """What is left of a rendering's characters, and when it must end."""

    characters: int
    end_s: float


_budget: ContextVar[_Budget] = ContextVar("_budget")


class ChatTemplate:
    """A template that writes a conversation as the text that its model reads.

    source: the Jinja template. constants: further variables, such as ``bos_token``. Variables, filters and tags are
    those of the transformers library: https://huggingface.co/docs/transformers/chat_templating. Raises ModelError for a
    template that isn't valid.
    """

    def __init__(self, source: str, constants: Mapping[str, Any] | None = None) -> None:
        if len(source) > _MOST_SOURCE:
            raise ModelError(f"chat template: expected at most {_MOST_SOURCE} characters, got {len(source)}")
        self.source = source
        self._constants = dict(constants or {})
        environment = _environment()
        try:
            tree = _Charging().visit(environment.parse(source))
            self._template = environment.from_string(tree)
        except TemplateSyntaxError as error:
            raise ModelError(f"chat template: line {error.lineno}: {error.message}") from error
        except (RecursionError, MemoryError, SyntaxError, TemplateError) as error:
            raise ModelError(f"chat template: it cannot be compiled ({type(error).__name__}: {error})") from error

    def render(self, messages: Sequence[Mapping[str, Any]], /, **variables: Any) -> str:
        """Return the text of a conversation. variables: such as ``tools`` and ``add_generation_prompt``.

        Raises ModelError if the template refuses the messages, fails, or takes too much time or memory.
        """
        token = _budget.set(_Budget(_BUDGET, time.monotonic() + _TIME_S))
        try:
            return self._template.render(self._constants | variables | {"messages": messages})
        except _OverBudget:
            raise ModelError(
                "chat template: it takes more time or memory than a prompt may (an endless loop?)"
            ) from None
        except RecursionError:
            raise ModelError("chat template: its macros call each other without end") from None
        except _Refusal as error:
            raise ModelError(f"chat template: {brief(str(error))}") from error
        except Exception as error:  # whatever its operators and methods raise on these messages
            raise ModelError(f"chat template: {type(error).__name__}: {brief(str(error))}") from error
        finally:
            _budget.reset(token)


class _Refusal(Exception):
    """The template called ``raise_exception``."""


def _environment() -> ImmutableSandboxedEnvironment:
    environment = _Sandbox(
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # constants would be computed before there is a budget
        extensions=[LoopControlExtension, _Generation],
        finalize=_output,
    )
    filters = {name: each for name, each in environment.filters.items() if name not in _SLOW} | {"tojson": _to_json}
    environment.filters = {name: _guarded(each) for name, each in filters.items()}
    environment.filters |= {_LITERAL: _literal, _TEXT: _text, _PASSED: _spend}
    names = {
        "raise_exception": _refuse,
        "strftime_now": _now,
        "dict": _dict,
        "namespace": Namespace,
        "range": safe_range,
    }
    environment.globals = {**names, "cycler": Cycler, "joiner": Joiner}
    return environment


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox; methods of texts and operators cost of the budget before they run."""

    intercepted_binops = frozenset(_INTERCEPTED)

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        receiver = getattr(obj, "__self__", None)
        if isinstance(receiver, str):
            _spend_for_text(receiver, (*args, *kwargs.values()))
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * abs(right) if operator == "**" else left.bit_length() + right.bit_length()
            _require(bits <= _MOST_BITS)
        elif operator == "%":
            _spend_for_text(left, (right,))
        elif operator == "*":
            _spend(max(_cost(left), 1) * max(_cost(right), 1))
        else:
            _spend(_cost(left) + _cost(right))
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        formatted = super().wrap_str_format(value)
        if formatted is None:
            return None

        def guarded(*args: Any, **kwargs: Any) -> str:
            _spend_for_text(value.__self__, (*args, *kwargs.values()))
            return formatted(*args, **kwargs)

        return guarded


class _Charging(NodeTransformer):
    """Makes loops, macros, concatenations and literals cost of the budget."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # jinja2's name
        return self._passed(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:  # noqa: N802
        return self._passed(node)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:  # noqa: N802
        return self._passed(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        node.nodes = [_filtered(self.visit(each), _TEXT) for each in node.nodes]
        return node

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        return self._charged(node)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        return self._charged(node)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        return self._charged(node) if node.ctx == "load" else node

    def _passed(self, node: Any) -> nodes.Node:
        """Spend the characters of a body's own text each time that it is run."""
        characters = sum(len(each.data) for each in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        cost = _filtered(nodes.Const(_ELEMENT + characters), _PASSED)
        node.body.insert(0, nodes.ExprStmt(cost).set_lineno(node.lineno))
        return node  # type: ignore[no-any-return]

    def _charged(self, node: nodes.Node) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, _LITERAL)


class _Generation(Extension):
    """The tag ``generation``, which marks replies for training: its body is rendered as it stands."""

    tags = {"generation"}  # noqa: RUF012  # as jinja2 declares it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)


_LITERAL, _TEXT, _PASSED = "litecl literal", "litecl text", "litecl passed"  # no template can name these filters


def _filtered(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _literal(value: Any) -> Any:
    """Spend what a list holds, within its elements too: lists of lists could double at every line."""
    _spend(_ELEMENT * _elements(value))
    return value


def _text(value: Any) -> Any:
    _spend(_size(value))
    return value


@pass_context  # which also keeps jinja2 from calling it for constants while it compiles
def _output(context: Any, value: Any) -> Any:
    return _text(value)


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that costs before it runs."""
    takes_context = hasattr(function, "jinja_pass_arg")

    @wraps(function)  # with its mark of wanting a context
    def guarded(*args: Any, **kwargs: Any) -> Any:
        first, *others = args[takes_context:]
        _spend_for_text(first, (*others, *kwargs.values()))
        return function(*args, **kwargs)

    return guarded


def _spend(cost: int) -> None:
    """Take characters from the budget. Raises _OverBudget if it is used up, and at the end of its time."""
    budget = _budget.get()
    budget.characters -= cost
    _require(budget.characters >= 0 and time.monotonic() < budget.end_s)


def _require(fits: bool) -> None:
    if not fits:
        raise _OverBudget


def _spend_for_text(first: Any, others: Sequence[Any]) -> None:
    """Spend the most that a method, a filter or a format may make of a text or a list: the product of all sizes.

    ``ljust(n)``, ``join(x)`` and ``replace("", x)`` make no more than that, nor does ``"%*d" % (n, x)``.
    """
    numbers = [_number(each) for each in others] + [_widest(first)]
    texts = [len(each) for each in others if isinstance(each, str)]
    if isinstance(first, str):
        cost = (len(first) + 1) * prod(max(n, 1) for n in (*numbers, *texts))
        cost += sum(_size(each) for each in others if not isinstance(each, str))
        joined = max((len(each) for each in others if isinstance(each, list | tuple)), default=0)
        _spend(cost + len(first) * joined)
    elif isinstance(first, _NESTED) and (texts or max(numbers) > 1 or not others):
        _spend(_size(first) * prod(max(n, 1) for n in numbers) + len(first) * max(texts, default=0))
    else:
        _spend(_ELEMENT * prod(max(n, 1) for n in numbers))


def _number(value: Any) -> int:
    """Return the largest integer in a value."""
    if isinstance(value, int):
        return min(abs(value), _BUDGET + 1)
    if isinstance(value, list | tuple):
        return max((_number(each) for each in value if isinstance(each, int)), default=0)
    return 0


def _widest(value: Any) -> int:
    """Return the largest number in a text that may be a format, such as ``%9999d``."""
    if not isinstance(value, str) or not ("%" in value or "{" in value):
        return 0
    return max(
        (_BUDGET + 1 if len(n) > 9 else int(n) for n in re.findall(r"(?<=[%<>^.0 +*-])[1-9]\d{3,}", value)), default=0
    )


def _cost(value: Any) -> int:
    """Return the cost of a copy of a value: its characters, elements or digits."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, int):
        return min(abs(value), _BUDGET + 1)
    return _ELEMENT * len(value) if isinstance(value, _NESTED) else 1


def _elements(value: Any) -> int:
    """Return the number of elements in a value and within its elements."""
    return sum(1 for _ in _parts(value))


def _size(value: Any) -> int:
    """Return the number of characters that a value takes as a text, about."""
    if isinstance(value, str):
        return len(value)
    return sum(len(each) if isinstance(each, str) else 4 for each in _parts(value)) + _ELEMENT


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value and its elements, to any depth. Raises _OverBudget for very many, and for a namespace."""
    left, most = [value], _budget.get().characters // _ELEMENT
    while left:
        each = left.pop()
        _require(most > 0 and not isinstance(each, Namespace))  # whose text may be of any size
        most -= 1
        yield each
        if isinstance(each, Mapping):
            left += each.keys()
            left += each.values()
        elif isinstance(each, list | tuple):
            left += each


def _dict(*given: Any, **named: Any) -> dict[Any, Any]:
    result = dict(*given, **named)
    _literal(result)
    return result


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Return JSON as the transformers library writes it: without HTML's escapes."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: object) -> NoReturn:
    raise _Refusal(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)
