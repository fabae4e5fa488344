"""What a caller of TFLite's interpreter can see, as functions of the library: one each, run on ours and on theirs.

Memory that was never written is compared by shape and type only. ``DIFFERENCES`` lists what is not the same, with the
sentence of docs/drop_in.md that says why.
"""

from pathlib import Path
from typing import Any

import numpy as np

from support.behaviour_models import (
    CONTENT,
    DYNAMIC,
    INNER,
    INPUT,
    NONE,
    OUTPUT,
    SCALAR,
    TWO,
    WEIGHT,
    Behaviour,
    OtherEnum,
    X,
    form,
    fresh,
    ran,
    ready,
    resized,
    runner,
    then,
)
from support.behaviour_runs import RUN, TELL

_GET: dict[str, Behaviour] = {
    "get_output_before_invoke": lambda lib: form(ready(lib).get_tensor(OUTPUT)),
    "get_input_before_set": lambda lib: form(ready(lib).get_tensor(INPUT)),
    "get_constant": lambda lib: ready(lib).get_tensor(WEIGHT),
    "get_constant_before_allocation": lambda lib: fresh(lib).get_tensor(WEIGHT),
    "get_input_before_allocation": lambda lib: fresh(lib).get_tensor(INPUT),
    "get_output_before_allocation": lambda lib: fresh(lib).get_tensor(OUTPUT),
    "get_inner_tensor": lambda lib: ran(lib).get_tensor(INNER),
    "get_inner_tensor_preserved": lambda lib: ran(lib, experimental_preserve_all_tensors=True).get_tensor(INNER),
    "get_output": lambda lib: ran(lib).get_tensor(OUTPUT),
    "get_output_by_keyword": lambda lib: ran(lib).get_tensor(tensor_index=OUTPUT, subgraph_index=0),
    "get_output_twice_is_two_arrays": lambda lib: (
        (i := ran(lib)) and not np.shares_memory(i.get_tensor(OUTPUT), i.get_tensor(OUTPUT))
    ),
    "get_is_writeable": lambda lib: ran(lib).get_tensor(OUTPUT).flags.writeable,
    "get_negative_index": lambda lib: ready(lib).get_tensor(-1),
    "get_index_out_of_range": lambda lib: ready(lib).get_tensor(NONE),
    "get_by_name": lambda lib: ready(lib).get_tensor("x"),
    "get_by_float": lambda lib: ready(lib).get_tensor(0.0),
    "get_by_none": lambda lib: ready(lib).get_tensor(None),
    "get_by_numpy_integer": lambda lib: form(ready(lib).get_tensor(np.int64(INPUT))),
    "get_of_no_subgraph": lambda lib: ready(lib).get_tensor(INPUT, 5),
    "get_of_negative_subgraph": lambda lib: ready(lib).get_tensor(INPUT, -1),
    "get_of_second_subgraph": lambda lib: form(
        then(i := ready(lib, TWO), i.get_signature_runner("second")(x=X), i.get_tensor(OUTPUT, 1))
    ),
    "get_scalar_type": lambda lib: type(ready(lib, SCALAR).get_tensor(1)).__name__,
    "get_dynamic_output_before_invoke": lambda lib: ready(lib, DYNAMIC).get_tensor(2),
    "get_dynamic_output": lambda lib: then(i := ready(lib, DYNAMIC), _fed_dynamic(i), i.get_tensor(2)),
    "details_of_dynamic_output": lambda lib: then(
        i := ready(lib, DYNAMIC), _fed_dynamic(i), i.get_output_details()[0]["shape"]
    ),
}


def _fed_dynamic(interpreter: Any) -> None:
    interpreter.set_tensor(0, np.arange(12, dtype=np.float32).reshape(2, 6))
    interpreter.set_tensor(1, np.array([3, 4], np.int32))
    interpreter.invoke()


def _set(value: Any, index: Any = INPUT) -> Behaviour:
    """Return the input's content after setting a value."""
    return lambda lib: then(i := ready(lib), i.set_tensor(index, value), i.get_tensor(INPUT))


_SET: dict[str, Behaviour] = {
    "set_returns_nothing": lambda lib: ready(lib).set_tensor(INPUT, X),
    "set_and_get": _set(X),
    "set_before_allocation": lambda lib: fresh(lib).set_tensor(INPUT, X),
    "set_none": _set(None),
    "set_integers_in_a_list": _set([[1, 2, 3, 4]]),
    "set_floats_in_a_list": _set([[1.0, 2, 3, 4]]),
    "set_text": _set("abc"),
    "set_scalar": _set(1.0),
    "set_rank_too_low": _set(X[0]),
    "set_other_shape": _set(X.reshape(2, 2)),
    "set_batch": _set(np.repeat(X, 2, axis=0)),
    "set_float64": _set(X.astype(np.float64)),
    "set_float16": _set(X.astype(np.float16)),
    "set_int32": _set(X.astype(np.int32)),
    "set_uint8": _set(X.astype(np.uint8)),
    "set_big_endian": _set(X.astype(">f4")),
    "set_fortran_order": _set(np.asfortranarray(X)),
    "set_with_strides": _set(np.repeat(X, 2, axis=1)[:, ::2]),
    "set_index_out_of_range": _set(X, NONE),
    "set_negative_index": _set(X, -1),
    "set_by_name": _set(X, "x"),
    "set_inner_tensor": _set(X, INNER),
    "set_output": _set(X, OUTPUT),
    "set_constant": _set(X[0], WEIGHT),
    "set_copies": lambda lib: then(
        i := ready(lib), x := X.copy(), i.set_tensor(INPUT, x), x.fill(9), i.get_tensor(INPUT)
    ),
}

_RESIZE: dict[str, Behaviour] = {
    "resize_returns_nothing": lambda lib: ready(lib).resize_tensor_input(INPUT, [2, 4]),
    "resize_and_get": lambda lib: form(resized(lib, [2, 4]).get_tensor(OUTPUT)),
    "resize_numpy_shape": lambda lib: form(resized(lib, np.array([3, 4])).get_tensor(INPUT)),
    "resize_tuple": lambda lib: form(resized(lib, (3, 4)).get_tensor(INPUT)),
    "resize_floats": lambda lib: form(resized(lib, [2.7, 4.0]).get_tensor(INPUT)),
    "resize_to_no_rows": lambda lib: form(then(i := resized(lib, [0, 4]), i.invoke(), i.get_tensor(OUTPUT))),
    "resize_to_other_rank": lambda lib: form(resized(lib, [4]).get_tensor(INPUT)),
    "resize_to_scalar": lambda lib: resized(lib, [], allocate=False) and None,
    "resize_input_details_at_once": lambda lib: resized(lib, [2, 4], allocate=False).get_input_details(),
    "resize_output_details_later": lambda lib: resized(lib, [2, 4], allocate=False).get_output_details(),
    "resize_output_details": lambda lib: resized(lib, [2, 4]).get_output_details(),
    "resize_keeps_signature": lambda lib: resized(lib, [2, 4]).get_input_details(),
    "resize_then_get": lambda lib: resized(lib, [2, 4], allocate=False).get_tensor(INPUT),
    "resize_then_set_new_shape": lambda lib: resized(lib, [2, 4], allocate=False).set_tensor(INPUT, np.repeat(X, 2, 0)),
    "resize_then_set_old_shape": lambda lib: resized(lib, [2, 4], allocate=False).set_tensor(INPUT, X),
    "resize_then_invoke": lambda lib: resized(lib, [2, 4], allocate=False).invoke(),
    "resize_to_same_then_invoke": lambda lib: resized(lib, [1, 4], allocate=False).invoke(),
    "resize_to_same_keeps_input": lambda lib: then(
        i := ready(lib), i.set_tensor(INPUT, X), i.resize_tensor_input(INPUT, [1, 4]), i.get_tensor(INPUT)
    ),
    "resize_to_what_does_not_fit": lambda lib: resized(lib, [2, 3]),
    "resize_negative": lambda lib: resized(lib, [-1, 4]),
    "resize_strict": lambda lib: form(resized(lib, [3, 4], strict=True).get_tensor(OUTPUT)),
    "resize_strict_fixed_dimension": lambda lib: resized(lib, [3, 5], strict=True),
    "resize_strict_rank": lambda lib: resized(lib, [3, 4, 1], strict=True),
    "resize_inner_tensor": lambda lib: ready(lib).resize_tensor_input(INNER, [2, 4]),
    "resize_constant": lambda lib: ready(lib).resize_tensor_input(WEIGHT, [2, 4]),
    "resize_index_out_of_range": lambda lib: ready(lib).resize_tensor_input(NONE, [2, 4]),
    "resize_negative_index": lambda lib: ready(lib).resize_tensor_input(-1, [2, 4]),
    "resize_by_name": lambda lib: ready(lib).resize_tensor_input("x", [2, 4]),
    "resize_none": lambda lib: ready(lib).resize_tensor_input(INPUT, None),
    "resize_text": lambda lib: ready(lib).resize_tensor_input(INPUT, "ab"),
    "resize_two_lists": lambda lib: ready(lib).resize_tensor_input(INPUT, [[2, 4]]),
    "resize_number": lambda lib: ready(lib).resize_tensor_input(INPUT, 4),
    "resize_beyond_32_bits": lambda lib: ready(lib).resize_tensor_input(INPUT, [2**40, 4]),
}

_VIEW: dict[str, Behaviour] = {
    "view_to_write_through": lambda lib: then(i := ready(lib), i.tensor(INPUT)().fill(2), i.get_tensor(INPUT)),
    "view_and_invoke": lambda lib: then(
        i := ready(lib), i.tensor(INPUT)().fill(2), i.invoke(), np.array(i.tensor(OUTPUT)())
    ),
    "view_of_output_before_invoke": lambda lib: form(np.array(ready(lib).tensor(OUTPUT)())),
    "view_of_input_is_writeable": lambda lib: ready(lib).tensor(INPUT)().flags.writeable,
    "view_of_output_is_writeable": lambda lib: ran(lib).tensor(OUTPUT)().flags.writeable,
    "view_of_constant_is_writeable": lambda lib: ready(lib).tensor(WEIGHT)().flags.writeable,
    "view_index_out_of_range": lambda lib: ready(lib).tensor(NONE)(),
    "view_by_name": lambda lib: ready(lib).tensor("x")(),
    "view_before_allocation": lambda lib: fresh(lib).tensor(INPUT)(),
    "view_function_needs_no_index_yet": lambda lib: callable(ready(lib).tensor(NONE)),
    "view_held_over_invoke": lambda lib: then(i := ready(lib), view := i.tensor(INPUT)(), i.invoke(), view) is None,
    "view_held_over_allocation": lambda lib: (
        then(i := ready(lib), view := i.tensor(INPUT)(), i.allocate_tensors(), view) is None
    ),
    "view_held_over_resize": lambda lib: (
        then(i := ready(lib), view := i.tensor(INPUT)(), i.resize_tensor_input(INPUT, [1, 4]), view) is None
    ),
}

_MAKE: dict[str, Behaviour] = {
    "make_of_nothing": lambda lib: lib.Interpreter(),
    "make_of_both": lambda lib: lib.Interpreter("a.tflite", model_content=CONTENT),
    "make_of_empty_path": lambda lib: lib.Interpreter(""),
    "make_of_empty_content": lambda lib: lib.Interpreter(model_content=b""),
    "make_of_missing_file": lambda lib: lib.Interpreter("/nowhere/model.tflite"),
    "make_of_missing_file_by_keyword": lambda lib: lib.Interpreter(model_path="nowhere.tflite"),
    "make_of_missing_pathlib": lambda lib: lib.Interpreter(model_path=Path("nowhere.tflite")),
    "make_of_folder": lambda lib: lib.Interpreter("/"),
    "make_of_number": lambda lib: lib.Interpreter(5),
    "make_of_text_content": lambda lib: fresh(lib, "abc"),
    "make_of_list_content": lambda lib: fresh(lib, [1, 2]),
    "make_of_bytearray": lambda lib: form(ready(lib, bytearray(CONTENT)).get_tensor(INPUT)),
    "make_of_memoryview": lambda lib: form(ready(lib, memoryview(CONTENT)).get_tensor(INPUT)),
    "make_of_junk": lambda lib: fresh(lib, b"junk" * 10),
    "make_of_half_a_file": lambda lib: fresh(lib, CONTENT[: len(CONTENT) // 2]),
    "make_with_no_threads": lambda lib: fresh(lib, num_threads=0),
    "make_with_negative_threads": lambda lib: fresh(lib, num_threads=-1),
    "make_with_text_threads": lambda lib: fresh(lib, num_threads="4"),
    "make_with_float_threads": lambda lib: fresh(lib, num_threads=2.0),
    "make_with_numpy_threads": lambda lib: fresh(lib, num_threads=np.int64(2)) and None,
    "make_with_threads": lambda lib: ran(lib, num_threads=2).get_tensor(OUTPUT),
    "make_with_resolver": lambda lib: ran(
        lib, experimental_op_resolver_type=lib.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    ).get_tensor(OUTPUT),
    "make_with_resolver_name": lambda lib: fresh(lib, experimental_op_resolver_type="BUILTIN"),
    "make_with_resolver_none": lambda lib: fresh(lib, experimental_op_resolver_type=None),
    "make_with_resolver_number": lambda lib: fresh(lib, experimental_op_resolver_type=1),
    "make_with_other_enum": lambda lib: fresh(lib, experimental_op_resolver_type=OtherEnum.AUTO_PILOT),
    "make_with_no_delegates": lambda lib: ran(lib, experimental_delegates=[]).get_tensor(OUTPUT),
    "make_with_delegates_none": lambda lib: fresh(lib, experimental_delegates=[None]),
    "make_with_delegates_no_list": lambda lib: fresh(lib, experimental_delegates=5),
    "make_with_unknown_keyword": lambda lib: fresh(lib, no_such_keyword=1),
    "make_with_every_keyword": lambda lib: ran(
        lib,
        num_threads=1,
        experimental_delegates=None,
        experimental_op_resolver_type=lib.OpResolverType.AUTO,
        experimental_preserve_all_tensors=False,
        experimental_disable_delegate_clustering=True,
        experimental_default_delegate_latest_features=True,
        experimental_compress_quantization_zero_points=True,
        experimental_disable_delegate_node_fusion=True,
        experimental_force_delegate_node_profiling=True,
    ).get_tensor(OUTPUT),
}

_SIGNATURES: dict[str, Behaviour] = {
    "signature_list": lambda lib: ready(lib).get_signature_list(),
    "signature_list_of_two": lambda lib: ready(lib, TWO).get_signature_list(),
    "signature_list_of_none": lambda lib: ready(lib, DYNAMIC).get_signature_list(),
    "signature_full_list": lambda lib: ready(lib, TWO)._get_full_signature_list(),
    "signature_runner": lambda lib: runner(lib)(x=X),
    "signature_runner_batch": lambda lib: runner(lib)(x=np.repeat(X, 3, axis=0)),
    "signature_runner_before_allocation": lambda lib: fresh(lib).get_signature_runner()(x=X),
    "signature_runner_order_of_outputs": lambda lib: [*ready(lib, TWO).get_signature_runner("second")(x=X)],
    "signature_runner_by_position": lambda lib: runner(lib)(X),
    "signature_runner_nothing": lambda lib: runner(lib)(),
    "signature_runner_too_much": lambda lib: runner(lib)(x=X, z=X),
    "signature_runner_wrong_name": lambda lib: runner(lib)(z=X),
    "signature_runner_list": lambda lib: runner(lib)(x=X.tolist()),
    "signature_runner_float64": lambda lib: runner(lib)(x=X.astype(np.float64)),
    "signature_runner_wrong_shape": lambda lib: runner(lib)(x=np.zeros((3, 5), np.float32)),
    "signature_runner_details": lambda lib: (runner(lib).get_input_details(), runner(lib).get_output_details()),
    "signature_runner_parts": lambda lib: [
        (r._signature_key, r._subgraph_index, dict(r._inputs), dict(r._outputs))
        for r in [ready(lib, TWO).get_signature_runner("second")]
    ],
    "signature_unknown": lambda lib: ready(lib).get_signature_runner("nothing"),
    "signature_empty": lambda lib: ready(lib).get_signature_runner(""),
    "signature_number": lambda lib: ready(lib).get_signature_runner(1),
    "signature_not_said_of_two": lambda lib: ready(lib, TWO).get_signature_runner(),
    "signature_not_said_of_none": lambda lib: ready(lib, DYNAMIC).get_signature_runner(),
    "signature_class": lambda lib: lib.SignatureRunner(ready(lib), "serving_default")(x=X),
    "signature_class_of_nothing": lambda lib: lib.SignatureRunner(),
    "signature_class_without_key": lambda lib: lib.SignatureRunner(ready(lib)),
}


BEHAVIOURS: dict[str, Behaviour] = {**_GET, **_SET, **_RESIZE, **_VIEW, **_MAKE, **_SIGNATURES, **TELL, **RUN}

_UNTYPED = "An error of litecl's own instead of one that Python raises within LiteRT."
_MORE = "litecl accepts more."
_WRITES = "Nothing but inputs and variables can be written."
_HOLD = "A view may be held: nothing is freed or moved while it is."
DIFFERENCES: dict[str, str] = {
    "get_scalar_type": "A tensor without dimensions is an array; LiteRT gives numpy's scalar.",
    "get_dynamic_output_before_invoke": "An output of unknown shape has no value before the first invoke.",
    "set_big_endian": "Bytes in another order are refused, not taken for numbers.",
    "set_output": _WRITES,
    "set_constant": _WRITES,
    "resize_inner_tensor": "Only inputs can be resized.",
    "resize_beyond_32_bits": _UNTYPED,
    "view_of_constant_is_writeable": _WRITES,
    "view_held_over_invoke": _HOLD,
    "view_held_over_allocation": _HOLD,
    "view_held_over_resize": _HOLD,
    "make_of_bytearray": _MORE,
    "make_of_memoryview": _MORE,
    "make_with_numpy_threads": _MORE,
    "make_with_delegates_none": _UNTYPED,
    "signature_runner_list": _UNTYPED,
    "ops_after_allocation": "The operators are always those of the file; LiteRT adds those of its delegate.",
    "native_handle": "There is no native object to hand out.",
    "pickle": "An interpreter can be pickled and copied.",
    "deepcopy": "An interpreter can be pickled and copied.",
    "context": "An interpreter can be closed, also by `with`.",
}
