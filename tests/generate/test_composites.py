"""Composites of exported language models: caches and logits against LiteRT, whatever composites are called."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node, Subgraph
from litecl.interpreter.ops.binary import ADD, SUB, AddOptions
from litecl.interpreter.ops.control import STABLEHLO_COMPOSITE
from litecl.interpreter.ops.unary import COS, SIN
from support import devices
from support.planned_gpu import PlannedGpu
from support.shared import SHARED

LLM = SHARED / "llm"
pytestmark = pytest.mark.skipif(not LLM.is_dir(), reason="../shared/llm (exported language models) is not here")
PREFILL, DECODE = "prefill_8", "decode"


@cache
def content() -> bytes:
    return (LLM / "gemma3_gpu.tflite").read_bytes()


class Steps:
    """A runtime with its caches, fed embeddings of its own. wide: slots that the mask may show."""

    def __init__(self, made: Any, wide: int = 131) -> None:
        made.allocate_tensors()
        self.made, self.wide = made, wide
        self._runners = {key: made.get_signature_runner(key) for key in (PREFILL, DECODE)}
        details = self._runners[DECODE].get_input_details()
        rng = np.random.default_rng(2)
        self._caches: dict[str, Array] = {
            name: rng.standard_normal(tuple(details[name]["shape"])).astype(np.float32)
            for name in sorted(details)
            if name.startswith("kv_cache")
        }

    def step(self, key: str, position: int, seed: int) -> Mapping[str, Array]:
        """Return logits and caches after some words at a position."""
        words = 8 if key == PREFILL else 1
        at = np.arange(position, position + words, dtype=np.int32)
        rng = np.random.default_rng(seed)
        given = dict(self._caches) | {
            "embeddings": rng.standard_normal((1, words, 64)).astype(np.float32),
            "input_pos": at,
            "mask": (np.arange(self.wide) <= at[:, None]).reshape(1, 1, words, self.wide),
            "param_tensor": np.array([position, *[position + words] * 2, 0, 0, 0, 0], np.int32).reshape(1, 1, 1, 7),
        }
        found = {name: np.array(value) for name, value in self._runners[key](**given).items()}
        self._caches = {name: found[name] for name in self._caches}
        return found


def reference(model: bytes) -> Steps:
    return Steps(LiteRT(model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF))


def on_device(model: bytes, **options: Any) -> Steps:
    steps = Steps(
        Interpreter(model, delegates=[CLDelegate(**{"strict": True, "dynamic_range": "reference", **options})])
    )
    assert all(row.claimed for row in steps.made.delegation_report().nodes)
    return steps


def check(one: Steps, other: Steps, key: str, position: int, seed: int) -> None:
    expected, got = (steps.step(key, position, seed) for steps in (one, other))
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=2e-5, err_msg=f"{name} at {position}")


def test_logits_and_caches_of_many_steps() -> None:
    """A prompt of 16 words and 60 more, caches begun with anything."""
    one, other = reference(content()), on_device(content())
    for position in (0, 8):
        check(one, other, PREFILL, position, seed=position)
    for position in range(16, 76):
        check(one, other, DECODE, position, seed=position)


def test_kernels_of_gpus(tmp_path: Path) -> None:
    with devices.in_tiles("large tiles", tmp_path) as options:
        one, other = reference(content()), on_device(content(), **options)
        check(one, other, PREFILL, 0, seed=1)
        for position in (8, 9, 130):
            check(one, other, DECODE, position, seed=position)


@pytest.mark.parametrize("position", [0, 122, 123, 124, 130, 131, 1000, -1, -20, 2**31 - 9])
def test_positions_at_the_ends_of_the_cache_and_beyond(position: int) -> None:
    """Both write to the nearest place that there is; where the mask shows nothing all keys count."""
    one, other = reference(content()), on_device(content())
    for key in (PREFILL, DECODE):
        check(one, other, key, position, seed=3)


def _altered(alter: Callable[[Node], Node], body: str = "", *, of: str = "") -> Model:
    """The model with another node in subgraphs of a name, or other composites of a name."""
    model = read(content())

    def graph(g: Subgraph) -> Subgraph:
        here = bool(body) and g.name.startswith(body)
        nodes = (alter(n) if here or (of and _is(n, of)) else n for n in g.nodes)
        return replace(g, nodes=tuple(nodes))

    return replace(model, subgraphs=tuple(map(graph, model.subgraphs)))


def _is(node: Node, name: str) -> bool:
    return node.op is STABLEHLO_COMPOSITE and node.options.name == name


def _called(**changes: Any) -> Callable[[Node], Node]:
    return lambda node: replace(node, options=replace(node.options, **changes))


def _instead(op: Any, other: Any, options: Any = None) -> Callable[[Node], Node]:
    return lambda node: replace(node, op=other, options=options or node.options) if node.op is op else node


_ALTERED: dict[str, Callable[[], Model]] = {
    "an unknown name": lambda: _altered(_called(name="odml.unheard_of"), of="odml.rms_norm"),
    "another name": lambda: _altered(_called(name="odml.rms_norm"), of="odml.rope"),
    "another version": lambda: _altered(_called(version=7), of="odml.sdpa_transposed"),
    "no attributes": lambda: _altered(_called(composite_attributes=b""), of="odml.rope"),
    "attributes that are none": lambda: _altered(_called(composite_attributes=b"\xff\x00\x01"), of="odml.cache_update"),
    "no rotation": lambda: _altered(_instead(SUB, ADD, AddOptions()), "odml.rope"),
    "sines for cosines": lambda: _altered(_instead(COS, SIN), "odml.rope"),
}


@pytest.mark.parametrize("name", _ALTERED)
def test_composites_that_are_not_what_they_are_called(name: str) -> None:
    """A composite is what its decomposition computes."""
    altered = bytes(write(_ALTERED[name]()))
    one, other = reference(altered), on_device(altered)
    check(one, other, PREFILL, 0, seed=1)
    for position in (8, 9):
        check(one, other, DECODE, position, seed=position)


@pytest.mark.parametrize("name", ["gemma3_gpu", "llama"])
def test_launches_of_two_layers_on_a_gpu(name: str) -> None:
    device = PlannedGpu("nvidia")
    interpreter = Interpreter(LLM / f"{name}.tflite", delegates=[CLDelegate(device)])
    interpreter.allocate_tensors()
    assert len(device.plans) == len(interpreter.get_signature_list())
    assert max(len(plan.works) for plan in device.plans) <= 45


def test_kernels_of_decode() -> None:
    """Norms, rotations and attention are one kernel each; a position is read as it is given."""
    interpreter = Interpreter(content(), delegates=[CLDelegate(PlannedGpu("nvidia"))])
    interpreter.allocate_tensors()
    plans = interpreter._delegations[0].plans  # type: ignore[attr-defined]
    plan = next(plan for plan in plans.values() if plan.region.subgraph == 1)
    entries = [work.launch.entry for work in plan.works]
    counts = {entry: entries.count(entry) for entry in ("layer_norm_local", "rope", "attention_local", "update")}
    assert counts == {"layer_norm_local": 13, "rope": 4, "attention_local": 2, "update": 4}
