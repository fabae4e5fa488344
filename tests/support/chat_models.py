"""A small language model with a tokenizer and a chat template beside it."""

from pathlib import Path

from support import tokenizers as small
from support.causal_lm import CausalLM


def chat_model(folder: Path, template: str, slots: int = 64) -> Path:
    """Write the files to a folder; return the model's. Needs the package tokenizers."""
    path = CausalLM(slots=slots).write(folder)
    (folder / "tokenizer.json").write_bytes(small.hugging_face())
    small.write_config(folder)
    (folder / "chat_template.jinja").write_text(template)
    return path
