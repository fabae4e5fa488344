"""Bundles, written by LiteRT-LM's builder, and as MediaPipe packs them."""

import io
import zipfile
from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest

from litecl import Generator
from litecl.generate.metadata import metadata
from litecl.generate.protobuf import Message
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from support import tokenizers as small
from support.bundles import LM, builder, bundle, said


@pytest.mark.parametrize(("tokenizer", "embedder"), [("hf", False), ("sp", False), ("hf", True)])
def test_a_bundle(tokenizer: str, embedder: bool, tmp_path: Path) -> None:
    """Its start token begins a text once; what it says of sampling applies unless a caller says otherwise."""
    if tokenizer == "sp":
        pytest.importorskip("sentencepiece")
    generator = Generator(bundle(tmp_path, tokenizer=tokenizer, embedder=embedder), cpu=True)
    read = generator.tokenizer
    assert read is not None
    prompt = [7, *read.encode("the cat", False)]
    session = generator.session()
    got = session.generate("the cat", max_tokens=10, stop_tokens=())
    assert [*session.tokens] == [*prompt, *LM.greedy(prompt, 10)]
    session.generate("the dog", max_tokens=1, stop_tokens=())
    assert [*session.tokens[-1 - len(read.encode("the dog", False)) : -1]] == read.encode("the dog", False)
    assert got.text


def test_its_sampler_applies(tmp_path: Path) -> None:
    fields = {"sampler_params": {"type": 2, "k": 40, "p": 0.95, "temperature": 5.0, "seed": 0}}
    generator = Generator(bundle(tmp_path, **fields), cpu=True)
    prompt = [7, 30, 31]
    runs = [generator.generate(prompt, max_tokens=20, seed=seed, stop_tokens=()).tokens for seed in (1, 2)]
    assert runs[0] != runs[1]
    alike = {"temperature": 5.0, "top_k": 40, "top_p": float(np.float32(0.95))}
    assert runs[0] == generator.generate(prompt, max_tokens=20, seed=1, stop_tokens=(), **alike).tokens
    assert [*generator.generate(prompt, max_tokens=20, temperature=0, stop_tokens=()).tokens] == LM.greedy(prompt, 20)


def test_its_stop_tokens_apply(tmp_path: Path) -> None:
    """One that is given as a text, and one of two numbers."""
    greedy = LM.greedy([5, 6], 8)
    generator = Generator(bundle(tmp_path, ends=greedy[3:5]), cpu=True)
    got = generator.generate([5, 6], max_tokens=60)
    assert ([*got.tokens], got.finish) == (greedy[:5], "stop token")
    drawn = [generator.generate([5, 6], max_tokens=60, temperature=50.0, seed=seed) for seed in range(20)]
    assert any(each.finish == "stop token" and each.tokens[-1] == 1 for each in drawn)
    assert not any(1 in each.tokens[:-1] for each in drawn)


def test_a_stop_of_several_tokens_leaves_no_text(tmp_path: Path) -> None:
    """Not of its first tokens either; what only begins like one comes as soon as it can't be one. A stop is generated
    whole: it doesn't begin in the prompt."""
    prompt = [5, 6]
    greedy = LM.greedy(prompt, 12)
    assert len({*greedy[:8]}) > 4
    for count, ends in ((3, greedy[3:6]), (0, greedy[0:2]), (12, [*greedy[3:6], 255]), (12, [6, greedy[0]])):
        generator = Generator(bundle(tmp_path, ends=ends), cpu=True)
        read = generator.tokenizer
        assert read is not None
        pieces = [*generator.stream(prompt, max_tokens=12)]
        assert "".join(pieces) == read.decode([*prompt, *greedy[:count]])[len(read.decode(prompt)) :]
        ended = count < 12
        assert [each.token for each in pieces] == greedy[: count + len(ends) if ended else 12]
        assert pieces[-1].finish == ("stop token" if ended else "max_tokens")
        assert ends[-1] != 255 or ([*pieces[3:6]] == ["", "", ""] and pieces[6])


def test_a_chat_goes_on_after_a_stop_of_several_tokens(tmp_path: Path) -> None:
    """The conversation then has the reply without its stop."""
    template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    session = Generator(bundle(tmp_path, jinja_prompt_template=template), cpu=True).session()
    first = session.chat("the cat", max_tokens=6)
    assert first.generation.finish == "max_tokens"
    tokens = first.generation.tokens
    session = Generator(bundle(tmp_path, ends=tokens[2:4], jinja_prompt_template=template), cpu=True).session()
    reply = session.chat("the cat", max_tokens=6)
    assert (reply.generation.finish, reply.generation.tokens) == ("stop token", tokens[:4])
    begun = len(session.tokens)
    assert session._known is not None
    assert session._known.tokens == session.tokens[: begun - 2]


def test_its_seed_applies(tmp_path: Path) -> None:
    """Sessions begin with it, and each goes on with its random numbers; a caller's counts first."""
    fields = {"sampler_params": {"type": 2, "k": 40, "p": 0.95, "temperature": 5.0, "seed": 7}}
    generator = Generator(bundle(tmp_path, **fields), cpu=True)
    options = {"max_tokens": 20, "stop_tokens": ()}
    first = generator.generate([7, 30, 31], **options).tokens
    assert first == generator.generate([7, 30, 31], **options).tokens
    assert first == generator.generate([7, 30, 31], seed=7, **options).tokens
    assert first != generator.generate([7, 30, 31], seed=8, **options).tokens
    session, other = generator.session(), generator.session()
    assert session.generate([7, 30, 31], **options).tokens == other.generate([7, 30, 31], **options).tokens
    drawn = session.generate([7, 30, 31], **options).tokens
    assert drawn == other.generate([7, 30, 31], **options).tokens
    assert drawn != other.generate([7, 30, 31], seed=7, **options).tokens
    assert Generator(bundle(tmp_path, sampler_params={"type": 2, "seed": -1}), cpu=True).defaults["seed"] == 2**32 - 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"k": 9}, {}),
        ({"k": 9, "p": 0.5, "temperature": 2.0}, {"temperature": 2.0, "top_k": 9, "top_p": 0.5}),
        ({"type": 2, "k": 9, "temperature": 2.0, "seed": 0}, {"temperature": 2.0, "top_k": 9, "seed": 0}),
        ({"type": 3, "k": 9, "temperature": 2.0}, {"temperature": 0.0}),
        ({"type": 1, "k": 9, "temperature": 2.0}, {"temperature": 2.0, "top_k": 9}),
        ({"type": 1, "k": 9}, {"temperature": 1.0, "top_k": 9}),
        ({"type": 2, "k": 0, "p": 0.5, "temperature": 0.5}, {"temperature": 0.5, "top_p": 0.5}),
    ],
)
def test_metadata(given: dict[str, Any], expected: dict[str, Any]) -> None:
    executor = pytest.importorskip("litert_lm_builder.runtime.proto.executor_metadata_pb2").ExecutorMetadata()
    executor.llm_executor_metadata.max_history_size = 99
    executor.llm_executor_metadata.attention_mask_settings.sliding_window_size = 12
    found = metadata(said(sampler_params=given).SerializeToString(), executor.SerializeToString())
    assert found.sampling == expected
    assert (found.start, found.stops) == ((7,), ("<eos>", (8, 9)))
    assert (found.context_length, found.sliding_window) == (99, 12)
    assert metadata(said().SerializeToString()).context_length == 64


def test_numbers_in_messages() -> None:
    token = pytest.importorskip("litert_lm_builder.runtime.proto.token_pb2").TokenIds(
        ids=[0, 1, 127, 128, 2**31 - 1, -1]
    )
    assert Message(token.SerializeToString()).integers(1) == (0, 1, 127, 128, 2**31 - 1, -1)
    assert Message(b"\x08\x05\x08\x80\x01").integers(1) == (5, 128)
    for content in (b"\x08", b"\x08\x80", b"\x0a\x05abc", b"\x0b", b"\x0d\x00", b"\x08" + b"\xff" * 11, b"\x0f\x00"):
        with pytest.raises(ModelError, match=r"field|number"):
            Message(content)
    with pytest.raises(ModelError, match="expected bytes"):
        Message(b"\x08\x05").messages(1)


def externalized(content: bytes) -> tuple[bytes, bytes]:
    """Return a model whose constants lie in another file, and that file; by the schema's own accessors."""
    made, weights = schema.ModelT.InitFromPackedBuf(content), bytearray()
    group = schema.ExternalBufferGroupT()
    group.name = "tflite_weights"
    made.externalBufferGroups, made.externalBuffers = [group], []
    for tensor in (tensor for graph in made.subgraphs for tensor in graph.tensors):
        data = made.buffers[tensor.buffer].data
        if data is not None and len(data):
            buffer = schema.ExternalBufferT()
            buffer.id, buffer.offset, buffer.length = 2**31 + len(made.externalBuffers), len(weights), len(data)
            tensor.buffer, tensor.externalBuffer = 0, buffer.id
            made.externalBuffers.append(buffer)
            weights += bytes(data)
    packed = flatbuffers.Builder(1024)
    packed.Finish(made.Pack(packed), b"TFL3")
    return bytes(packed.Output()), bytes(weights)


def test_weights_in_a_section_of_their_own(tmp_path: Path) -> None:
    """And beside a ``.tflite`` file."""
    model, weights = externalized(bytes(write(LM.model())))
    assert len(model) < len(weights)
    (tmp_path / "lm.tflite").write_bytes(model)
    with pytest.raises(ModelError, match=r"tflite_weights"):
        Generator(tmp_path / "lm.tflite", cpu=True)
    (tmp_path / "tflite_weights").write_bytes(weights)
    made = builder.LitertLmFileBuilder()
    made.add_system_metadata(builder.Metadata(key="Authors", value="tests", dtype=builder.DType.STRING))
    (tmp_path / "metadata.pb").write_bytes(said().SerializeToString())
    made.add_llm_metadata(str(tmp_path / "metadata.pb"))
    made.add_tflite_model(str(tmp_path / "lm.tflite"), builder.TfLiteModelType.PREFILL_DECODE)
    without = tmp_path / "without.litertlm"
    with without.open("wb") as file:
        made.build(file)
    with pytest.raises(ModelError, match=r"lie in another file, 'tflite_weights', which does not exist"):
        Generator(without, cpu=True)
    made.add_tflite_weights(str(tmp_path / "tflite_weights"), builder.TfLiteModelType.PREFILL_DECODE)
    with (tmp_path / "model.litertlm").open("wb") as file:
        made.build(file)
    for name in ("lm.tflite", "model.litertlm"):
        got = Generator(tmp_path / name, cpu=True).generate([5, 6, 7, 8, 9, 10], max_tokens=12, stop_tokens=())
        assert [*got.tokens] == LM.greedy([5, 6, 7, 8, 9, 10], 12)


# Zip files


def task(folder: Path, **entries: bytes) -> Path:
    path = folder / "model.task"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("described", [True, False])
def test_a_task_bundle(described: bool, tmp_path: Path) -> None:
    """As MediaPipe packs them. Where the metadata is an older message, the tokenizer begins a text."""
    pytest.importorskip("sentencepiece")
    model = bytes(write(LM.model()))
    path = task(
        tmp_path, TF_LITE_PREFILL_DECODE=model, TOKENIZER_MODEL=small.sentencepiece(),
        METADATA=said().SerializeToString() if described else b"\x0a\x02\x08\x01 another message",
    )  # fmt: skip
    generator = Generator(path, cpu=True)
    session = generator.session()
    session.generate("the cat", max_tokens=5)
    assert generator.tokenizer is not None
    prompt = [7 if described else 1, *generator.tokenizer.encode("the cat", False)]
    assert [*session.tokens] == [*prompt, *LM.greedy(prompt, 5)]


def test_task_bundles_that_are_damaged(tmp_path: Path) -> None:
    model = bytes(write(LM.model()))
    with pytest.raises(ModelError, match="without the model 'prefill_decode'"):
        Generator(task(tmp_path, TOKENIZER_MODEL=b"x"))
    content = task(tmp_path, TF_LITE_PREFILL_DECODE=model).read_bytes()
    for size in (4, 100, len(content) // 2, len(content) - 9):
        (tmp_path / "cut.task").write_bytes(content[:size])
        with pytest.raises(ModelError):
            Generator(tmp_path / "cut.task")
    damaged = bytearray(content)
    damaged[2000] ^= 1
    (tmp_path / "cut.task").write_bytes(damaged)
    with pytest.raises(ModelError, match="no zip file that can be read"):
        Generator(tmp_path / "cut.task")
    assert io.BytesIO(content).getbuffer().nbytes == len(content)
