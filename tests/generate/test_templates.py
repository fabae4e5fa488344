"""Chat templates: rendered as the transformers library does, and as the models' documentation shows; hostile ones."""

import itertools
from datetime import datetime
from typing import Any

import pytest

from litecl.generate import templates
from litecl.generate.templates import ChatTemplate
from litecl.interpreter.errors import ModelError
from support.chat_templates import CONVERSATIONS, REPLY, SYSTEM, TEMPLATES, TOOL, USER

NAMES = {"bos_token": "<bos>", "eos_token": "<eos>"}


def rendered(name: str, messages: Any, **variables: Any) -> str:
    given = {"tools": None, "documents": None, "add_generation_prompt": True} | variables
    return ChatTemplate(TEMPLATES[name], NAMES).render(messages, **given)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qwen", "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"),
        ("gemma", "<bos><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n"),
        ("mistral", "<bos>[INST] Hi[/INST]"),
        ("phi", "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\n"),
        (
            "llama",
            "<bos><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
            "Today Date: TODAY\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
    ],
)
def test_the_documented_format(name: str, text: str) -> None:
    today = f"{datetime.now():%d %b %Y}"
    assert rendered(name, [SYSTEM, {"role": "user", "content": "Hi"}]) == text.replace("TODAY", today)


@pytest.fixture(scope="module")
def library() -> Any:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    empty = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=empty, **NAMES)


@pytest.mark.parametrize(("name", "conversation"), itertools.product(TEMPLATES, CONVERSATIONS))
def test_as_transformers_renders(name: str, conversation: str, library: Any) -> None:
    """With tools and without, with a prompt for a reply and without; refusals alike."""
    from jinja2 import TemplateError

    for tools, prompt, thinking in itertools.product(
        (None, [TOOL, TOOL]), (True, False), ({}, {"enable_thinking": False})
    ):
        given = {"tools": tools, "add_generation_prompt": prompt} | thinking
        try:
            expected = library.apply_chat_template(
                CONVERSATIONS[conversation], chat_template=TEMPLATES[name], tokenize=False, **given
            )
        except (TemplateError, TypeError):
            with pytest.raises(ModelError, match="chat template"):
                rendered(name, CONVERSATIONS[conversation], **given)
            continue
        assert rendered(name, CONVERSATIONS[conversation], **given) == expected


def test_a_refusal_says_the_templates_reason() -> None:
    with pytest.raises(ModelError, match="chat template: Conversation roles must alternate"):
        rendered("gemma", [USER, USER])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{% for %}", "line 1: Expected"),
        ("a\n{{ x", "line 2"),
        ("{{ 1|nosuch }}", "line 1: No filter named 'nosuch'"),
        ("{{ " + "(" * 9000 + "1" + ")" * 9000 + " }}", "cannot be compiled"),
        ("a" * (1 << 21), "expected at most"),
        ("{{ messages.content.x }}", "UndefinedError"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ messages + 1 }}", "TypeError"),
    ],
)
def test_faults(source: str, said: str) -> None:
    with pytest.raises(ModelError, match=f"^chat template: .*{said}"):
        ChatTemplate(source).render([USER, REPLY])


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(a=1) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ raise_exception.__globals__.json }}",
        "{{ '{0.__class__.__mro__}'.format(1) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}{{ os }}",
        "{{ open('/etc/passwd') }}",
    ],
)
def test_the_sandbox(source: str) -> None:
    messages = [dict(USER)]
    with pytest.raises(ModelError, match=r"^chat template: (Security|Type|Undefined)Error"):
        ChatTemplate(source).render(messages)
    assert messages == [USER]


_GROWING = "{%% set ns = namespace(x='ab') %%}{%% for i in range(64) %%}{%% set ns.x = %s %%}{%% endfor %%}"
_ENDLESS = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "loops of text": "{% for a in range(99999) %}" + "x" * 9999 + "{% endfor %}",
    "macros": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "macros in loops": "{% macro f(n) %}{% for i in range(9) %}{{ f(n-1) if n }}{% endfor %}{% endmacro %}{{ f(60) }}",
    "recursive loops": "{% for a in range(99) recursive %}{{ loop(range(99)) if loop.depth < 50 }}{% endfor %}",
    "products": "{{ 'a' * 10**10 }}",
    "lists of products": "{{ [1] * 10**10 }}",
    "powers": "{{ 9 ** 99999 ** 99999 }}",
    "sums": _GROWING % "ns.x + ns.x",
    "concatenations": _GROWING % "ns.x ~ ns.x",
    "joins": _GROWING % "[ns.x, ns.x]|join",
    "replacements": _GROWING % "ns.x.replace('a', ns.x)",
    "filtered replacements": _GROWING % "ns.x|replace('b', ns.x)",
    "formats": _GROWING % "'%s%s' % (ns.x, ns.x)",
    "calls of format": _GROWING % "'{}{}'.format(ns.x, ns.x)",
    "blocks": "{% set x = 'ab' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60,
    "lists of lists": "{% set x = [1] %}" + "{% set x = [x, x] %}" * 60,
    "mappings": "{% set x = {} %}" + "{% set x = dict(a=x, b=x) %}" * 60,
    "comparisons": "{% set x, y = [1], [1] %}" + "{% set x = [x, x] %}{% set y = [y, y] %}" * 60 + "{{ x == y }}",
    "wide formats": "{{ '%999999999d' % 1 }}",
    "formats by a number": "{{ '%*d' % (10**9, 1) }}",
    "wide calls of format": "{{ '{:>999999999}'.format(1) }}",
    "justified": "{{ 'a'.ljust(10**10) }}",
    "centred": "{{ 'a'|center(10**10) }}",
    "mapped": "{{ range(99999)|map('center', 99999)|join }}",
    "indented": "{{ [1]|tojson(indent=10**9) }}",
    "batches": "{{ [1]|batch(10**9, 0)|list }}",
    "slices of texts": "{% set x = 'a' * 9999999 %}{% for i in range(99999) %}{% set y = x[1:] %}{% endfor %}",
}


@pytest.mark.parametrize("name", _ENDLESS)
def test_an_endless_template(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_TIME_S", 0.3)
    monkeypatch.setattr(templates, "_BUDGET", 1 << 24)
    with pytest.raises(ModelError, match=r"^chat template: it(s macros call| takes more time or memory)"):
        ChatTemplate(_ENDLESS[name]).render([USER])


def test_a_long_conversation_is_no_endless_one() -> None:
    """A thousand messages of a thousand characters, by every template."""
    user, reply = ({"role": role, "content": "word " * 200} for role in ("user", "assistant"))
    for name in TEMPLATES:
        assert len(rendered(name, [user, reply] * 500 + [user])) > 990_000
