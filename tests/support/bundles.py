"""Bundles of a small model, written by LiteRT-LM's builder; tests skip without it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from litecl.interpreter.file.writer import write_file
from support import tokenizers as small
from support.causal_lm import CausalLM

LM = CausalLM()
builder = pytest.importorskip("litert_lm_builder")
pytest.importorskip("tokenizers")
pb = pytest.importorskip("litert_lm_builder.runtime.proto.llm_metadata_pb2")


def said(ends: Sequence[int] = (8, 9), start: Sequence[int] = (7,), **fields: Any) -> Any:
    """LlmMetadata that begins a text with token 7 and ends it with <eos> or with two tokens."""
    made = pb.LlmMetadata(max_num_tokens=64, **fields)
    if start:
        made.start_token.token_ids.ids.extend(start)
    made.stop_tokens.add().token_str = "<eos>"
    made.stop_tokens.add().token_ids.ids.extend(ends)
    made.llm_model_type.generic_model.SetInParent()
    return made


def bundle(folder: Path, *, tokenizer: str | bytes = "hf", embedder: bool = False, **fields: Any) -> Path:
    """Write a bundle of the small model with LiteRT-LM's builder. tokenizer: also a ``tokenizer.json``."""
    made = builder.LitertLmFileBuilder()
    made.add_system_metadata(builder.Metadata(key="Authors", value="tests", dtype=builder.DType.STRING))
    (folder / "metadata.pb").write_bytes(said(**fields).SerializeToString())
    made.add_llm_metadata(str(folder / "metadata.pb"))
    if tokenizer == "hf" or isinstance(tokenizer, bytes):
        (folder / "tok.json").write_bytes(tokenizer if isinstance(tokenizer, bytes) else small.hugging_face())
        made.add_hf_tokenizer(str(folder / "tok.json"))
    elif tokenizer == "sp":
        (folder / "tok.spiece").write_bytes(small.sentencepiece())
        made.add_sentencepiece_tokenizer(str(folder / "tok.spiece"))
    write_file(LM.model(embeddings=embedder), folder / "lm.tflite")
    made.add_tflite_model(str(folder / "lm.tflite"), builder.TfLiteModelType.PREFILL_DECODE)
    if embedder:
        write_file(LM.embedder(), folder / "table.tflite")
        made.add_tflite_model(str(folder / "table.tflite"), builder.TfLiteModelType.EMBEDDER)
    path = folder / "model.litertlm"
    with path.open("wb") as file:
        made.build(file)
    return path
