"""A tokenizer of English words, of their beginnings and of bytes, as a ``tokenizer.json``."""

import json

import numpy as np

from litecl.interpreter.graph import Array

_TEXT = (
    "the cat dog bird mouse child house garden river mat sat ran slept sang on in under over and then while it was "
    "warm old green very"
)
_WORDS = _TEXT.split()
_SPECIAL = ["<pad>", "<eos>", "<bos>"]
_TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
_START, _END = "<bos>", "<eos>"
_CONFIG = {"eos_token": _END, "bos_token": _START, "chat_template": _TEMPLATE}
_NEVER, _SELDOM, _WORD = -30.0, 1.0, 3.0  # logits


def _bytes() -> list[str]:
    """Return the character that stands for each byte, as in GPT-2: itself, or one from 256 on if it isn't visible."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in visible else next(others)) for byte in range(256)]


def vocabulary() -> list[str]:
    """Return the tokens by number. A word's blank belongs to it; bytes are as ``_bytes`` has them."""
    blank = _bytes()[ord(" ")]
    beginnings = [blank + word[: n + 1] for word in _WORDS for n in range(len(word))]
    return [*_SPECIAL, *_bytes(), *dict.fromkeys(beginnings)]


def biases() -> Array:
    """Return what is added to logits, so that random weights write words, and seldom letters, and no odd bytes."""
    blank = _bytes()[ord(" ")]
    kinds = {**dict.fromkeys(_SPECIAL, _NEVER), _END: _SELDOM, **{blank + word: _WORD for word in _WORDS}}
    likely = {*map(chr, range(0x21, 0x7F)), blank}
    return np.array([kinds.get(t, 0.0 if t in likely or len(t) > 1 else _NEVER) for t in vocabulary()], np.float32)


def config() -> str:
    """Return the ``tokenizer_config.json``, which has a chat template."""
    return json.dumps(_CONFIG, indent=1)


def metadata() -> bytes:
    """Return a bundle's LlmMetadata, a protocol buffer: what begins and ends a text, and the chat template."""
    return _field(1, _field(2, _START.encode())) + _field(2, _field(2, _END.encode())) + _field(7, _TEMPLATE.encode())


def _field(number: int, content: bytes) -> bytes:
    """Return a field of at most 127 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def tokenizer() -> str:
    """Return the ``tokenizer.json``: pairs of bytes with a blank before them are merged up to whole words."""
    tokens = vocabulary()
    numbers = {token: n for n, token in enumerate(tokens)}
    merges = [[token[:-1], token[-1]] for token in tokens[len(_SPECIAL) + 256 :]]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    begun = [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    document = {
        "version": "1.0",
        "added_tokens": [{"id": n, "content": text, **flags} for n, text in enumerate(_SPECIAL)],
        "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": begun,
            "pair": [*begun, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [numbers["<bos>"]], "tokens": ["<bos>"]}},
        },
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": numbers, "merges": merges},
    }
    return json.dumps(document, ensure_ascii=False, indent=1)
