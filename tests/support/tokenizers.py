"""Small tokenizers: of bytes, in Hugging Face's and in SentencePiece's format."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS = "the cat sat on the mat and the dog ran to the other side of the house while it was raining"


class Bytes:
    """A tokenizer of one's own: a token is a byte; 256 ends a text."""

    stop_tokens = (256,)

    def encode(self, text: str, first: bool) -> list[int]:
        return [*text.encode()]

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(token for token in tokens if token < 256).decode("utf-8", "replace")


def hugging_face() -> bytes:
    """A ``tokenizer.json`` of words and bytes; it begins a text with <bos>."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<pad>", "<eos>", "<bos>"]
    made.train_from_iterator(
        [WORDS], trainers.BpeTrainer(vocab_size=290, special_tokens=special, initial_alphabet=alphabet)
    )
    made.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", made.token_to_id("<bos>"))]
    )
    return str(made.to_str()).encode()


def characters(count: int, nul: int = -1) -> bytes:
    """A ``tokenizer.json`` of ``count`` characters, one a token: ``chr(0x4E00 + token)``, but of <pad>, <eos>, <bos>,
    which it begins a text with, and of NUL."""
    special = ["<pad>", "<eos>", "<bos>"]
    characters = {("\0" if n == nul else chr(0x4E00 + n)): n for n in range(len(special), count)}
    bos = {"id": "<bos>", "type_id": 0}
    begun = [{"SpecialToken": bos}, {"Sequence": {"id": "A", "type_id": 0}}]
    post = {"type": "TemplateProcessing", "single": begun, "pair": [*begun, {"Sequence": {"id": "B", "type_id": 1}}]}
    post |= {"special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    added = [{"id": n, "content": text, **flags} for n, text in enumerate(special)]
    vocabulary = {text: n for n, text in enumerate(special)} | characters
    document = {"version": "1.0", "added_tokens": added, "post_processor": post, "decoder": {"type": "Fuse"}}
    return json.dumps(document | {"model": {"type": "BPE", "vocab": vocabulary, "merges": []}}).encode()


def write_config(folder: Path, eos: Any = "<eos>") -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": eos}))


def sentencepiece() -> bytes:
    """A model of SentencePiece with bytes for what it has no piece for."""
    import sentencepiece as library

    made = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter([WORDS] * 3), model_writer=made, vocab_size=290, byte_fallback=True, model_type="bpe",
        hard_vocab_limit=False, minloglevel=3,
    )  # fmt: skip
    return made.getvalue()
