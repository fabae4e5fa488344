"""Behaviours of an interpreter that runs, and what it tells."""

import copy
import pickle
from typing import Any

from support.behaviour_models import (
    CONTENT,
    INPUT,
    NONE,
    QUANTIZED,
    TWO,
    WEIGHT,
    Behaviour,
    X,
    fresh,
    ready,
    then,
)

TELL: dict[str, Behaviour] = {
    "details_of_inputs": lambda lib: ready(lib).get_input_details(),
    "details_before_allocation": lambda lib: fresh(lib).get_input_details(),
    "details_of_outputs": lambda lib: ready(lib).get_output_details(),
    "details_of_quantized_output": lambda lib: ready(lib, QUANTIZED).get_output_details(),
    "details_of_one": lambda lib: ready(lib)._get_tensor_details(WEIGHT, 0),
    "details_of_no_tensor": lambda lib: ready(lib)._get_tensor_details(NONE, 0),
    "details_of_negative_tensor": lambda lib: ready(lib)._get_tensor_details(-1, 0),
    "details_need_subgraph": lambda lib: ready(lib)._get_tensor_details(0),
    "details_of_all": lambda lib: ready(lib, TWO).get_tensor_details(subgraph_index=1)[:6],
    "details_of_no_subgraph": lambda lib: ready(lib).get_tensor_details(3),
    "details_of_negative_subgraph": lambda lib: ready(lib).get_tensor_details(-1),
    "number_of_subgraphs": lambda lib: ready(lib, TWO).num_subgraphs(),
    "ops": lambda lib: fresh(lib)._get_ops_details(),
    "ops_after_allocation": lambda lib: ready(lib)._get_ops_details(),
    "op": lambda lib: ready(lib)._get_op_details(1),
    "op_out_of_range": lambda lib: ready(lib)._get_op_details(NONE),
    "op_negative": lambda lib: ready(lib)._get_op_details(-1),
    "op_by_name": lambda lib: ready(lib)._get_op_details("ADD"),
    "compressed_zero_points": lambda lib: ready(lib).experimental_compress_quantization_zero_points,
    "native_handle": lambda lib: type(ready(lib)._native_handle()),
    "resolvers": lambda lib: [(resolver.name, resolver.value) for resolver in lib.OpResolverType],
}
RUN: dict[str, Behaviour] = {
    "invoke_returns_nothing": lambda lib: ready(lib).invoke(),
    "invoke_before_allocation": lambda lib: fresh(lib).invoke(),
    "allocate_returns_nothing": lambda lib: fresh(lib).allocate_tensors(),
    "allocate_twice": lambda lib: ready(lib).allocate_tensors(),
    "allocate_keeps_input": lambda lib: then(
        i := ready(lib), i.set_tensor(INPUT, X), i.allocate_tensors(), i.get_tensor(INPUT)
    ),
    "reset_variables": lambda lib: ready(lib).reset_all_variables(),
    "reset_variables_before_allocation": lambda lib: fresh(lib).reset_all_variables(),
    "custom_ops_none": lambda lib: lib.InterpreterWithCustomOps(model_content=CONTENT).get_input_details(),
    "custom_ops_unknown_symbol": lambda lib: lib.InterpreterWithCustomOps(["NoSuchSymbol"], model_content=CONTENT),
    "custom_ops_by_position": lambda lib: lib.InterpreterWithCustomOps(CONTENT),
    "load_missing_delegate": lambda lib: lib.load_delegate("libedgetpu.so.1"),
    "load_missing_delegate_with_options": lambda lib: lib.load_delegate("libedgetpu.so.1", {"device": "usb"}),
    "load_delegate_of_number": lambda lib: lib.load_delegate(5),
    "delegate_class_of_missing_library": lambda lib: lib.Delegate("nowhere.so"),
    "pickle": lambda lib: then(
        i := pickle.loads(pickle.dumps(ready(lib))), i.set_tensor(INPUT, X), i.get_tensor(INPUT)
    ),
    "deepcopy": lambda lib: then(i := copy.deepcopy(ready(lib)), i.set_tensor(INPUT, X), i.get_tensor(INPUT)),
    "context": lambda lib: _within(ready(lib)),
}


def _within(interpreter: Any) -> Any:
    with interpreter as entered:
        entered.set_tensor(INPUT, X)
        return entered.get_tensor(INPUT)
