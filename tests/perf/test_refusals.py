"""The page of operators lists the option values that device records refuse."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.interpreter.errors import ModelError
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.schema import ActivationFunctionType
from litecl.verify import refusals

_X = np.ones((2, 3), np.float32)


def _case(**options: Any) -> Case:
    return Case("x", ADD, AddOptions(**options), [_X, _X])


def test_values_of_options_are_tried() -> None:
    """Of all activations the device leaves one of float additions to the CPU, which takes every one."""
    (found,) = refusals.refused_options([_case()], on_device=True)
    assert (found.option, found.values, found.where) == ("fused_activation_function", ("SIGN_BIT",), "device")
    assert found.reason == "fused activation SIGN_BIT"
    assert {"NONE", "RELU6"} <= set(found.others) and "SIGN_BIT" not in found.others
    assert refusals.refused_options([_case()], on_device=False) == ()


def test_halves_are_refused_as_floats_are() -> None:
    """The device holds FLOAT16 as float32."""
    halved = replace(_case(), inputs=[_X.astype(np.float16)] * 2)
    assert refusals.device_refusal(halved) is None
    assert refusals.refused_options([halved], on_device=True) == refusals.refused_options([_case()], on_device=True)


def test_what_the_interpreter_refuses_is_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def infer(options: AddOptions, inputs: Any) -> Any:
        if options.fused_activation_function == ActivationFunctionType.TANH:
            raise ModelError("no TANH\nand more")
        return ADD.infer(options, inputs)

    refusing = replace(ADD, infer=infer)
    found = refusals.refused_options([replace(_case(), op=refusing)], on_device=False)
    assert [(f.values, f.where, f.reason.partition(": ")[2] or f.reason) for f in found] == [
        (("TANH",), "CPU", "no TANH")
    ]


def test_a_value_that_one_case_takes_is_not_refused() -> None:
    """A case of its own with a value decides, for others may be unfit for it."""
    cases = [_case(), _case(fused_activation_function=ActivationFunctionType.SIGN_BIT)]
    assert refusals.refused_options(cases, on_device=False) == ()


def test_no_more_cases_run_than_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that is taken does, of every value: `litecl coverage` asks of some 450."""
    ran: list[Case] = []
    own = refusals._cpu_refusal
    monkeypatch.setattr(refusals, "_cpu_refusal", lambda case: ran.append(case) or own(case))
    refusals.refused_options([_case()] * 3, on_device=True)
    values = [case.options.fused_activation_function.name for case in ran]
    assert (values.count("RELU"), values.count("TANH"), values.count("SIGN_BIT")) == (1, 1, 3)


def test_what_a_lowering_may_say() -> None:
    """Texts of errors and of operands that must be constant, through the functions that are called."""
    found = refusals.converter_refusals()
    assert found["DepthwiseConv2dNativeBackpropInput"] == (
        "the shape of its filter must be known",
        "its data_format is ...; build the model with channels last",
        "height and width of its images and filter must be known; give input_shapes",
    )
    assert found["Conv2D"] == ("its data_format is ...; build the model with channels last",)
    assert "its statistics must be constant at conversion" in found["FusedBatchNormV3"]


def test_operators_of_the_same_reasons_stand_together() -> None:
    assert refusals.by_reason({"B": ["x", "y"], "A": ["z"], "C": ["x", "y"]}) == [(("A",), "z"), (("B", "C"), "x; y")]


def test_many_values_are_told_by_the_others() -> None:
    row = refusals.RefusedOption("type", tuple(f"T{i}" for i in range(11)), "CPU", "no", ("INT32", "INT64"))
    assert row.shown == "all but INT32, INT64"
    assert replace(row, values=("A", "B")).shown == "A, B"
