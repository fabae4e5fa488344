"""Branches, loops, lists and variables, against TensorFlow, in LiteRT and litecl, on several values in turn."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter  # noqa: E402
from litecl.delegate import CLDelegate  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from litecl.interpreter.graph import Array  # noqa: E402
from support.conversion import (  # noqa: E402
    assert_all_close,
    assert_computes,
    converter_of,
    invoke,
    litert,
    operators,
    runtimes,
    sizes,
)
from support.tf_control_flow import CONTROL_FLOW, Counters  # noqa: E402
from support.tf_functions import TfFunction  # noqa: E402


@pytest.mark.parametrize("case", CONTROL_FLOW, ids=repr)
def test_control_flow(case: TfFunction) -> None:
    function = tf.function(case.function, autograph=case.autograph)
    concrete = function.get_concrete_function(*case.specs)
    content = Converter.from_concrete_functions([concrete]).convert()
    fed = [case.feeds(seed) for seed in (0, 1, 2)]
    wanted = [[np.asarray(y) for y in tf.nest.flatten(concrete(*map(tf.constant, values)))] for values in fed]
    assert_computes(content, fed, wanted)


def _converted(name: str) -> Any:
    (case,) = [case for case in CONTROL_FLOW if case.name == name]
    concrete = tf.function(case.function, autograph=case.autograph).get_concrete_function(*case.specs)
    return Converter.from_concrete_functions([concrete]).convert_to_model()


def test_loops_carry_only_what_they_need() -> None:
    model = _converted("unused and unchanged")
    assert sizes(model) == [1, 1, 2]
    (loop,) = [node for node in model.subgraphs[0].nodes if node.op.name == "WHILE"]
    assert len(loop.inputs) == 2
    assert sizes(_converted("while")) == [1, 1, 4]


def test_lists_of_fixed_size_are_written_in_place_and_others_joined() -> None:
    assert operators(_converted("array of fixed size"))["DYNAMIC_UPDATE_SLICE"] == 1
    grown = operators(_converted("array that grows"))
    assert grown["CONCATENATION"] == 1
    assert not grown["DYNAMIC_UPDATE_SLICE"]


def test_loop_is_a_layer_unless_it_transposes_weights() -> None:
    assert operators(_converted("recurrent layer"))["UNIDIRECTIONAL_SEQUENCE_RNN"] == 1
    assert operators(_converted("recurrent layer of transposed weights"))["WHILE"] == 1


def test_windows_of_any_batch_are_not_taken_for_growth() -> None:
    """A loop whose states keep their shapes runs on the device; one of which a state grows does not."""

    def window(x: Any) -> Any:
        body = lambda i, y, z: (i + 1, tf.concat([y[:, 1:], x[:, :1]], 1), tf.pad(z[:, :-1], [[0, 0], [1, 0]]))  # noqa: E731
        return tf.while_loop(lambda i, *_: i < 3, body, [0, x, x * 2])[1:]

    concrete = tf.function(window, autograph=False).get_concrete_function(tf.TensorSpec((None, 4)))
    content = Converter.from_concrete_functions([concrete]).convert()
    (loop,) = [node for node in read(content).subgraphs[0].nodes if node.op.name == "WHILE"]
    assert len(loop.inputs) <= 4
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    delegated = Interpreter(model_content=content, delegates=[CLDelegate()])
    for runtime in (litert(content), delegated):
        assert_all_close(invoke(runtime, [x]), [np.asarray(y) for y in concrete(tf.constant(x))])
    report = delegated.delegation_report()
    assert all(row.claimed for row in report.nodes), str(report)


def _feeds() -> list[Array]:
    random = np.random.default_rng(3)
    return [random.standard_normal((1, 4)).astype(np.float32) + shift for shift in (1, -1, 1, 0)]


@pytest.mark.parametrize("name", ["straight", "in_branch", "in_loop"])
def test_variables_that_change(name: str) -> None:
    converted = Counters()
    concrete = getattr(converted, name).get_concrete_function()
    content = Converter.from_concrete_functions([concrete], converted).convert()
    for runtime in runtimes(content):
        module = Counters()
        for x in _feeds():
            expected = [np.asarray(y) for y in tf.nest.flatten(getattr(module, name)(x))]
            assert_all_close(invoke(runtime, [x]), expected)


def test_variables_that_do_not_change_are_constants() -> None:
    module = Counters()
    model = Converter.from_concrete_functions([module.straight.get_concrete_function()]).convert_to_model()
    handles = [node.options.shared_name for node in model.subgraphs[0].nodes if node.op.name == "VAR_HANDLE"]
    assert len(handles) == len(set(handles)) == 2
    assert model.subgraphs[0].nodes[0].op.name == "CALL_ONCE"


def test_signatures_share_variables(tmp_path: Path) -> None:
    module = Counters()
    tf.saved_model.save(module, tmp_path, signatures={"a": module.straight, "b": module.in_branch})
    content = Converter.from_saved_model(tmp_path, ["a", "b"]).convert()
    for runtime in (litert(content), Interpreter(model_content=content)):
        straight, in_branch = (runtime.get_signature_runner(key) for key in ("a", "b"))
        fresh = Counters()
        for x in _feeds():
            expected = [np.asarray(y) for y in fresh.straight(x)]
            results = straight(x=x)
            assert_all_close([results[f"output_{i}"] for i in range(3)], expected)
            assert_all_close([in_branch(x=x)["output_0"]], [np.asarray(fresh.in_branch(x))])


def test_what_a_file_cannot_hold_is_named() -> None:
    def of_lists(x: Any) -> Any:
        made = tf.TensorArray(tf.variant, 1).write(0, tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[4]))
        return tf.raw_ops.TensorListStack(input_handle=made.read(0), element_shape=[4], element_dtype=tf.float32)

    with pytest.raises(ConversionError, match=r"TensorList.*list"):
        converter_of(of_lists, tf.TensorSpec((3, 4))).convert()


@pytest.mark.parametrize(
    ("second", "why"), [(3, r"differ in size: \[2, 4\] and \[3, 4\]"), (None, "may differ in size")]
)
def test_an_array_of_parts_of_several_sizes_is_refused(second: int | None, why: str) -> None:
    def parts(x: Any, n: Any, m: Any) -> Any:
        first = x[: 2 if second else n]
        return tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, first).write(1, x[: second or m]).concat()

    size = tf.TensorSpec((), tf.int32)
    with pytest.raises(ConversionError, match=f"TensorListReserve 'TensorArrayV2': the list .*: its elements {why}"):
        converter_of(parts, tf.TensorSpec((3, 4)), size, size).convert()


@pytest.mark.parametrize(
    ("keys", "values", "default", "asked"),
    [
        (["a", "b"], tf.constant([3, 5], tf.int64), -1, [b"b", b"z", b"a"]),
        (tf.constant([3, 5], tf.int64), ["a", "b"], "?", np.int64([5, 4, 3])),
        (tf.constant([3, 5], tf.int64), [0.5, 1.5], -1.0, np.int64([5, 4, 3])),
    ],
    ids=["strings", "to strings", "numbers"],
)
def test_lookup_tables(keys: Any, values: Any, default: Any, asked: Any, tmp_path: Path) -> None:
    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)

        @tf.function(autograph=False)
        def find(self, x: Any) -> Any:
            return tf.cond(tf.size(x) > 1, lambda: self.table.lookup(x), lambda: self.table.lookup(x[:1]))

    module, wanted = Module(), np.array(asked, None if isinstance(asked, np.ndarray) else object)
    spec = tf.TensorSpec((None,), tf.constant(asked).dtype)
    tf.saved_model.save(module, tmp_path, signatures=module.find.get_concrete_function(spec))
    expected = np.asarray(module.find(tf.constant(asked)))
    for converter in (
        Converter.from_saved_model(tmp_path),
        Converter.from_concrete_functions([module.find.get_concrete_function(spec)], module),
    ):
        content = converter.convert()
        for runtime in (litert(content), Interpreter(model_content=content)):
            for _ in range(2):
                assert invoke(runtime, [wanted])[0].tolist() == expected.tolist()
