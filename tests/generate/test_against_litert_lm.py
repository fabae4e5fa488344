"""What LiteRT-LM makes of a bundle, and litecl: the table in docs/guides/language_models.md.

Needs ``pip install litert-lm-api==0.18.1``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from litecl import Generator, sample
from litecl.generate.sampling import Sampling, probabilities
from litecl.interpreter.errors import ModelError
from support import tokenizers as small
from support.bundles import LM, builder, bundle, pb

peer = pytest.importorskip("litert_lm", reason="LiteRT-LM isn't installed: pip install litert-lm-api==0.18.1")

PROMPT = [30, 71, 112]
LAST = "{{ messages[-1].content if messages[-1].content is string else messages[-1].content[0].text }}"
NEVER = 299  # a token that the texts below don't have


def text(tokens: Sequence[int]) -> str:
    return "".join(chr(0x4E00 + token) for token in tokens)


class Pair:
    """A bundle in both. said: its metadata; see ``support.bundles.said``."""

    def __init__(self, folder: Path, nul: int = -1, **said: Any) -> None:
        said = {"ends": [NEVER, NEVER], **said}
        path = bundle(folder, tokenizer=small.characters(LM.words, nul), **said)
        peer.set_min_log_severity(peer.LogSeverity.SILENT)
        self.engine = peer.Engine(str(path), backend=peer.Backend.CPU(thread_count=1), cache_dir=":nocache")
        self.ours = Generator(path, cpu=True)

    def theirs(self, prompt: str, most: int | None = None, stream: bool = False, **sampler: Any) -> str:
        config = peer.SamplerConfig(**sampler) if sampler else None
        with self.engine.create_session(
            apply_prompt_template=False, max_output_tokens=most, sampler_config=config
        ) as session:
            session.run_prefill([prompt])
            if stream:
                return "".join(each.texts[0] for each in session.run_decode_async())
            return str(session.run_decode().texts[0])


def test_the_samples_bundle(tmp_path: Path) -> None:
    """As ``litecl sample`` writes it, without LiteRT-LM's builder: the same text in both."""
    path = sample.write(tmp_path).bundle
    engine = peer.Engine(str(path), backend=peer.Backend.CPU(thread_count=1), cache_dir=":nocache")
    with engine.create_session(apply_prompt_template=False, max_output_tokens=20) as session:
        session.run_prefill(["the cat sat"])
        theirs = str(session.run_decode().texts[0])
    assert theirs == Generator(path, cpu=True).generate("the cat sat", max_tokens=20).text


@pytest.mark.parametrize(
    ("start", "theirs", "ours"), [((7,), [7], [7]), ((), [], [2]), ((7, 8), [7], [7, 8]), ((2,), [2], [2])]
)
def test_the_beginning(start: Sequence[int], theirs: list[int], ours: list[int], tmp_path: Path) -> None:
    """Without a start token, litecl takes the tokenizer's, in a chat's template too."""
    pair = Pair(tmp_path, start=start, jinja_prompt_template="{{ bos_token }}" + LAST)
    assert pair.theirs(text(PROMPT), 9) == text(LM.greedy([*theirs, *PROMPT], 9))
    assert [*pair.ours.generate(text(PROMPT), max_tokens=9).tokens] == LM.greedy([*ours, *PROMPT], 9)
    with pair.engine.create_conversation(max_output_tokens=9) as chat:
        parts = chat.send_message(text(PROMPT))["content"]
    assert "".join(part["text"] for part in parts) == text(LM.greedy([*theirs, *PROMPT], 9))
    assert [*pair.ours.chat(text(PROMPT), max_tokens=9).generation.tokens] == LM.greedy([*ours, *PROMPT], 9)


def test_stops_of_several_tokens(tmp_path: Path) -> None:
    greedy = LM.greedy([7, *PROMPT], 12)
    for ends, count in ((greedy[3:6], 3), ([*greedy[3:5], NEVER], 12), ([PROMPT[-1], greedy[0]], 12)):
        pair = Pair(tmp_path, ends=ends)
        ours = pair.ours.generate(text(PROMPT), max_tokens=12).text
        assert text(greedy[:count]) == ours == pair.theirs(text(PROMPT), 12) == pair.theirs(text(PROMPT), 12, True)


def test_limits(tmp_path: Path) -> None:
    """LiteRT-LM keeps a slot for the last token, which litecl doesn't read; it takes 0 for 1."""
    pair = Pair(tmp_path, ends=[NEVER, NEVER])
    prompt = [30 + n % 50 for n in range(LM.slots)]
    assert len(pair.theirs(text(prompt[: LM.slots - 2]))) == 1
    with pytest.raises(RuntimeError):
        pair.theirs(text(prompt[: LM.slots - 1]))
    for count in (LM.slots - 2, LM.slots - 1):
        assert len(pair.ours.generate(text(prompt[:count]), stop_tokens=()).tokens) == LM.slots - count
    assert len(pair.theirs(text(PROMPT), 0)) == len(pair.theirs(text(PROMPT), 1)) == 1
    with pytest.raises(ModelError, match="max_tokens"):
        pair.ours.generate(text(PROMPT), max_tokens=0)


def test_samplers(tmp_path: Path) -> None:
    """One option of a caller replaces the bundle's whole sampler there, and without a top_k it takes the likeliest."""
    greedy, options = text(LM.greedy([7, *PROMPT], 9)), {"max_tokens": 9, "stop_tokens": ()}
    pair = Pair(tmp_path, sampler_params={"k": 40, "p": 1.0, "temperature": 5.0, "seed": 7})
    drawn = [[side() for _ in range(2)] for side in (
        lambda: pair.theirs(text(PROMPT), 9), lambda: pair.ours.generate(text(PROMPT), **options).text,
    )]  # fmt: skip
    assert all(first == second != greedy for first, second in drawn)
    for each in ({"temperature": 5.0}, {"seed": 8}, {"top_p": 0.99}):
        assert pair.theirs(text(PROMPT), 9, **each) == greedy
        assert pair.ours.generate(text(PROMPT), **options, **each).text != greedy
    for fields in ({"type": 1, "k": 40, "temperature": 5.0}, {"type": 3}, {"type": 2, "p": 0.9, "temperature": 5.0}):
        pair = Pair(tmp_path, sampler_params=fields)
        with pytest.raises(RuntimeError):
            pair.theirs(text(PROMPT), 9)
        assert pair.ours.generate(text(PROMPT), **options).tokens
    pair = Pair(tmp_path, sampler_params={"type": 2, "k": 40, "p": 1.0})
    assert pair.theirs(text(PROMPT), 9) == greedy
    assert pair.ours.defaults["temperature"] == 1


def test_repetition_penalties(tmp_path: Path) -> None:
    """Of tokens that LiteRT-LM generated; litecl counts the prompt's too, as transformers does."""
    pair = Pair(tmp_path, jinja_prompt_template=LAST)
    prompt = [*PROMPT, *LM.greedy([7, *PROMPT], 3)]
    config = peer.interfaces.RepetitionPenaltyConfig(repetition_penalty=1e6)
    with pair.engine.create_conversation(max_output_tokens=9) as chat:
        parts = chat.send_message(text(prompt), repetition_penalty_config=config)["content"]
    for got, counts_prompt in (
        ("".join(part["text"] for part in parts), False),
        (pair.ours.generate(text(prompt), max_tokens=9, repetition_penalty=1e6, stop_tokens=()).text, True),
    ):
        tokens = [7, *prompt]
        for _ in range(9):
            before = tokens[0 if counts_prompt else 1 + len(prompt) :]
            tokens.append(int(probabilities(LM.logits(tokens)[-1], Sampling(repetition_penalty=1e6), before).argmax()))
        assert got == text(tokens[1 + len(prompt) :]), counts_prompt


def test_nul_and_special_tokens(tmp_path: Path) -> None:
    greedy = LM.greedy([7, *PROMPT], 9)
    at = next(n for n, token in enumerate(greedy) if n and token not in (0, 1, 2, *greedy[:n], *PROMPT))
    pair = Pair(tmp_path, nul=greedy[at])
    written = text(greedy).replace(chr(0x4E00 + greedy[at]), "\0")
    assert pair.theirs(text(PROMPT), 9) == written[:at]
    assert pair.theirs(text(PROMPT), 9, True) == written.replace("\0", "")
    assert pair.ours.generate(text(PROMPT), max_tokens=9, stop_tokens=()).text == written
    read = pair.ours.tokenizer
    assert read is not None
    assert pair.engine.detokenize([30, 2, 31]) == f"{text([30])}<bos>{text([31])}"
    assert read.decode([30, 2, 31]) == text([30, 31])


def test_a_bundle_without_stops(tmp_path: Path) -> None:
    path = bundle(tmp_path, tokenizer=small.characters(LM.words))
    document = pb.LlmMetadata(max_num_tokens=LM.slots)
    document.llm_model_type.generic_model.SetInParent()
    made = builder.LitertLmFileBuilder()
    made.add_system_metadata(builder.Metadata(key="Authors", value="tests", dtype=builder.DType.STRING))
    (tmp_path / "metadata.pb").write_bytes(document.SerializeToString())
    made.add_llm_metadata(str(tmp_path / "metadata.pb"))
    made.add_hf_tokenizer(str(tmp_path / "tok.json"))
    made.add_tflite_model(str(tmp_path / "lm.tflite"), builder.TfLiteModelType.PREFILL_DECODE)
    with path.open("wb") as file:
        made.build(file)
    engine = peer.Engine(str(path), backend=peer.Backend.CPU(thread_count=1), cache_dir=":nocache")
    with pytest.raises(RuntimeError, match="session"):
        engine.create_session(apply_prompt_template=False)
    assert Generator(path, cpu=True).generate(PROMPT).finish == "context"
