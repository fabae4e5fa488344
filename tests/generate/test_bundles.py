"""Bundles: whole ones, written by LiteRT-LM's builder, and damaged ones."""

import io
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest

from litecl import Generator
from litecl.generate import litertlm, parts
from litecl.generate.metadata import metadata
from litecl.generate.protobuf import Message
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write, write_file
from support import tokenizers as small
from support.causal_lm import CausalLM

LM = CausalLM()
builder = pytest.importorskip("litert_lm_builder")
pytest.importorskip("tokenizers")
pb = pytest.importorskip("litert_lm_builder.runtime.proto.llm_metadata_pb2")


def said(ends: Sequence[int] = (8, 9), **fields: Any) -> Any:
    """LlmMetadata that begins a text with token 7 and ends it with <eos> or with two tokens."""
    made = pb.LlmMetadata(max_num_tokens=64, **fields)
    made.start_token.token_ids.ids.append(7)
    made.stop_tokens.add().token_str = "<eos>"
    made.stop_tokens.add().token_ids.ids.extend(ends)
    made.llm_model_type.generic_model.SetInParent()
    return made


def bundle(folder: Path, *, tokenizer: str = "hf", embedder: bool = False, **fields: Any) -> Path:
    """Write a bundle of the small model with LiteRT-LM's builder."""
    made = builder.LitertLmFileBuilder()
    made.add_system_metadata(builder.Metadata(key="Authors", value="tests", dtype=builder.DType.STRING))
    (folder / "metadata.pb").write_bytes(said(**fields).SerializeToString())
    made.add_llm_metadata(str(folder / "metadata.pb"))
    if tokenizer == "hf":
        (folder / "tok.json").write_bytes(small.hugging_face())
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


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
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


# Damaged ones


def test_cut_short(tmp_path: Path) -> None:
    """Wherever a bundle is cut, an error says so and names the file."""
    content = bundle(tmp_path).read_bytes()
    cuts = [*range(0, 800, 9), *range(801, len(content), 7001), len(content) - 1]
    for size in cuts:
        (tmp_path / "cut.litertlm").write_bytes(content[:size])
        with pytest.raises(ModelError) as caught:
            Generator(tmp_path / "cut.litertlm", cpu=True)
        assert "cut.litertlm" in "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def test_bits_that_flipped(tmp_path: Path) -> None:
    """Every byte of the header: nothing but typed errors."""
    content = bytearray(bundle(tmp_path).read_bytes())
    rng = np.random.default_rng(1)
    for position in range(struct.unpack_from("<Q", content, 24)[0]):
        damaged = content[:]
        damaged[position] ^= int(rng.integers(1, 256))
        try:
            litertlm.sections(memoryview(damaged))
        except ModelError:
            continue


def changed(offset: int, kind: str, value: int) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        made = bytearray(content)
        struct.pack_into(kind, made, offset, value)
        return bytes(made)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(8, "<I", 2), r"a bundle of version 2\.\d+\.0: expected 1\.x"),
        (changed(8, "<I", 0), r"a bundle of version 0\.\d+\.0: expected 1\.x"),
        (changed(24, "<Q", 1 << 60), "the list of sections ends at"),
        (changed(24, "<Q", 8), "the list of sections ends at 8"),
        (changed(24, "<Q", 36), "FlatBuffer"),
    ],
)
def test_headers(change: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    content = change(bundle(tmp_path).read_bytes())
    with pytest.raises(ModelError, match=message):
        litertlm.sections(memoryview(content))


def test_a_section_outside(tmp_path: Path) -> None:
    content = bytearray(bundle(tmp_path).read_bytes())
    size, ends = len(content), struct.unpack_from("<Q", content, 24)[0]
    last = max(litertlm.sections(memoryview(content)), key=lambda section: len(section.content))
    end = next(o for o in range(32, ends - 7) if struct.unpack_from("<Q", content, o)[0] == size)
    assert len(last.content) < size
    for wrong in (size + 1, 1 << 63, 0):
        struct.pack_into("<Q", content, end, wrong)
        with pytest.raises(ModelError, match=rf"section \d: bytes \d+ to {wrong}, in a bundle of {size} bytes"):
            litertlm.sections(memoryview(content))


def test_packed_tokenizers_that_lie(tmp_path: Path) -> None:
    packed = next(s.content for s in litertlm.sections(memoryview(bundle(tmp_path).read_bytes())) if "JSON" in s.kind)
    size = int.from_bytes(packed[:8], "little")
    assert len(litertlm.unpacked(packed)) == size
    for wrong, message in ((size + 1, f"expected {size + 1} bytes"), (size - 1, "got more"), (1 << 40, "at most")):
        with pytest.raises(ModelError, match=message):
            litertlm.unpacked(memoryview(wrong.to_bytes(8, "little") + packed[8:]))
    for content in (packed[:-4], packed[:8], packed[:5], packed[:8].tobytes() + b"no zlib"):
        with pytest.raises(ModelError, match="the tokenizer"):
            litertlm.unpacked(memoryview(content))


def test_without_a_model(tmp_path: Path) -> None:
    made = builder.LitertLmFileBuilder()
    made.add_system_metadata(builder.Metadata(key="Authors", value="tests", dtype=builder.DType.STRING))
    write_file(LM.embedder(), tmp_path / "table.tflite")
    made.add_tflite_model(str(tmp_path / "table.tflite"), builder.TfLiteModelType.EMBEDDER)
    with (tmp_path / "model.litertlm").open("wb") as file:
        made.build(file)
    with pytest.raises(ModelError, match=r"without the model 'prefill_decode'; it has \['embedder'\]"):
        Generator(tmp_path / "model.litertlm")


def test_without_the_embedder(tmp_path: Path) -> None:
    content = memoryview(bundle(tmp_path, embedder=True).read_bytes())
    found = parts.read(tmp_path / "model.litertlm")
    assert [*found.embedders] == ["embeddings"]
    assert len(content) > sum(len(file.content) for file in (found.model, *found.embedders.values()))
    write_file(LM.model(embeddings=True), tmp_path / "alone.tflite")
    with pytest.raises(ModelError, match="which an embedder computes: expected one, got none"):
        Generator(tmp_path / "alone.tflite")


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
    with pytest.raises(ModelError, match=r"lie in another file, 'tflite_weights', which is not there"):
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
