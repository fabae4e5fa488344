"""Options that are on or off, of the delegate and of the interpreter: "no" is neither."""

import inspect
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.claim.options import CLOptions
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ArgumentError, DelegateError
from litecl.interpreter.file.writer import write
from support import small_models

OF_DELEGATE = [item.name for item in fields(CLOptions) if item.type is bool]
OF_INTERPRETER = [name for name, given in inspect.signature(Interpreter).parameters.items() if given.annotation is bool]
NEITHER: list[Any] = ["yes", "no", "", b"1", [], np.ones(2)]


@pytest.mark.parametrize("value", NEITHER, ids=repr)
def test_neither_on_nor_off(value: Any) -> None:
    assert "deterministic" in OF_DELEGATE
    for name in OF_DELEGATE:
        with pytest.raises(DelegateError, match=f"{name}: expected True or False, got {type(value).__name__}"):
            CLDelegate(**{name: value})
    content = write(small_models.chain())
    assert "experimental_preserve_all_tensors" in OF_INTERPRETER
    for name in OF_INTERPRETER:
        with pytest.raises(ArgumentError, match=f"{name}: expected True or False"):
            Interpreter(content, **{name: value})
    interpreter = Interpreter(content)
    with pytest.raises(ArgumentError, match="strict: expected True or False"):
        interpreter.resize_tensor_input(0, [1], strict=value)
    with pytest.raises(ArgumentError, match="resources: expected True or False"):
        interpreter.reset_all_variables(resources=value)


@pytest.mark.parametrize("value", [True, False, np.True_, 1, 0, np.int64(1), None], ids=repr)
def test_what_litert_takes(value: Any) -> None:
    for name in OF_DELEGATE:
        assert getattr(CLDelegate(**{name: value}), name) is bool(value)
    for name in OF_INTERPRETER:
        Interpreter(write(small_models.chain()), **{name: value})
