"""Files of Google's exporter, step by step against LiteRT: tokens and logits."""

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import OpResolverType

from litecl import Generator
from litecl.generate import litertlm
from support.language_models import Steps, content, greedy
from support.shared import SHARED

LLM = SHARED / "llm"
pytestmark = pytest.mark.skipif(not LLM.is_dir(), reason="../shared/llm (exported language models) is not here")

PROMPT = np.random.default_rng(4).integers(3, 512, 53).tolist()  # of 32, 8, 8 and four single ones, and the last
EMBEDDER = LLM / "gemma3_gpu_embedder_emb4.tflite"


@pytest.mark.parametrize("cpu", [True, False], ids=["numpy", "delegate"])
@pytest.mark.parametrize(
    ("name", "embedder", "tolerance"),
    [
        ("llama", None, 1e-5),
        ("llama_wo8", None, 1e-5),
        ("gemma3_gpu", EMBEDDER, 1e-5),
        ("llama_wi8", None, 1e-5),
        ("llama_wi4", None, 1e-5),
        ("gemma3_gpu_wi8_emb4", EMBEDDER, 3e-2),  # rows are quantized at run time: a step of 1/127 more or less
    ],
)
def test_greedy_tokens_and_logits(name: str, embedder: Path | None, tolerance: float, cpu: bool) -> None:
    """A prompt in pieces, then thirty tokens; rows that are quantized at run time as by LiteRT's reference kernels."""
    path = LLM / f"{name}.tflite"
    tokens, logits = greedy(Steps(path.read_bytes(), content(embedder)), PROMPT, 30)
    options = {} if cpu else {"dynamic_range": "reference"}
    generator = Generator(path, embedder=embedder, cpu=cpu, **options)
    got = generator.generate(PROMPT, max_tokens=30, logits=True, stop_tokens=())
    assert got.tokens == tuple(tokens)
    assert got.logits is not None
    scale = max(float(np.abs(x).max()) for x in logits)
    errors = np.abs(np.array(got.logits) - np.array(logits)).max(-1) / scale
    if cpu and name == "llama_wi8":  # a row of it, quantized at run time, lies near a tie of roundings
        assert max(errors[0], np.median(errors)) <= tolerance and errors.max() < 1e-2
    else:
        assert errors.max() <= tolerance
    if not cpu:
        report = generator.report()
        assert report is not None and report.claimed > 0


def test_a_device_quantizes_rows_as_by_default_in_litert() -> None:
    """With a zero point each, which XNNPACK computes and the reference kernels do not. Where a row lies near a tie of
    roundings, as LiteRT's own results differ between processors, results are at least nearer than the reference's.
    """
    path = LLM / "llama_wi4.tflite"
    file = path.read_bytes()
    tokens, logits = greedy(Steps(file, resolver=OpResolverType.AUTO), PROMPT, 30)
    _, of_reference = greedy(Steps(file), PROMPT, 30)
    got = Generator(path).generate(PROMPT, max_tokens=30, logits=True, stop_tokens=())
    assert got.tokens == tuple(tokens)
    assert got.logits is not None
    errors, others = (np.array(found) - np.array(logits) for found in (got.logits, of_reference))
    exact = np.abs(errors).max() <= 1e-5 * np.abs(logits).max()
    assert exact or np.sqrt(np.mean(errors**2)) < 0.8 * np.sqrt(np.mean(others**2))


def test_blocks_of_weights() -> None:
    """LiteRT computes zeros of these. Numpy and device agree as far as rows are rounded alike."""
    path = LLM / "llama_wi4b32.tflite"
    one, other = (Generator(path, cpu=cpu).generate(PROMPT, max_tokens=30, logits=True) for cpu in (True, False))
    assert one.tokens == other.tokens
    assert one.logits is not None and other.logits is not None
    np.testing.assert_allclose(np.array(one.logits), np.array(other.logits), atol=1e-2)


@pytest.mark.parametrize("cpu", [True, False], ids=["numpy", "delegate"])
def test_a_bundle(cpu: bool) -> None:
    """A text goes in, and one comes out: model, embedder, tokenizer and metadata lie in one file."""
    path = LLM / "gemma3_gpu.litertlm"
    models = {s.type: bytes(s.content) for s in litertlm.sections(memoryview(path.read_bytes())) if s.kind == "model"}
    generator = Generator(path, cpu=cpu)
    assert (generator.context_length, generator.vocabulary) == (131, 512)
    tokenizer = generator.tokenizer
    assert tokenizer is not None
    prompt = tokenizer.encode("the cat sat on the mat, hello world", True)
    tokens, _ = greedy(Steps(models["prefill_decode"], models["embedder"]), prompt, 20)
    pieces = [*generator.stream("the cat sat on the mat, hello world", max_tokens=20)]
    assert [piece.token for piece in pieces] == tokens
    assert "".join(pieces) == tokenizer.decode(tokens)
    assert [piece.finish for piece in pieces][-2:] == ["", "max_tokens"]
