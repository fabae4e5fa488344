"""Facts on operators, in the converter's table and read from TensorFlow's definitions."""

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python.framework import op_def_registry  # noqa: E402

from litecl.converter.importer.effects import effects_of, touches_state  # noqa: E402
from litecl.converter.lower import LOWERINGS  # noqa: E402
from litecl.converter.traits import TRAITS, Effects  # noqa: E402


def _definition(name: str) -> Any:
    return op_def_registry.get(name)


def test_the_table_of_traits_agrees_with_tensorflow() -> None:
    for name, traits in TRAITS.items():
        definition = _definition(name)
        assert definition is not None, f"{name} is no operator of TensorFlow"
        assert touches_state(definition) == (traits.effects is not Effects.PURE), name
        assert traits.like is None or traits.like < len(definition.input_arg), name
        assert not traits.commutative or len(definition.input_arg) == 2, name


def test_every_operator_with_effects_that_is_lowered_is_known_to_keep_them() -> None:
    definitions = {name: _definition(name) for name in LOWERINGS}
    assert not [name for name, definition in definitions.items() if definition is None]
    writers = {name for name, definition in definitions.items() if effects_of(definition) is Effects.WRITES}
    assigns = {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"}
    assert writers == {*assigns, "If", "While", "Save", "SaveV2"}


@pytest.mark.parametrize(
    ("name", "effects"),
    [
        ("Mul", Effects.PURE),
        ("ReadVariableOp", Effects.READS),
        ("VarHandleOp", Effects.READS),
        ("VariableV2", Effects.READS),
        ("RandomUniform", Effects.READS),
        *((name, Effects.WRITES) for name in ("AssignVariableOp", "Assign", "ScatterUpdate", "ApplyGradientDescent")),
        *((name, Effects.WRITES) for name in ("ResourceApplyAdam", "StatefulUniform", "PyFunc", "WriteFile")),
        ("RefSwitch", Effects.READS),
        ("Assert", Effects.READS),
    ],
)
def test_effects_are_read_from_definitions(name: str, effects: Effects) -> None:
    assert effects_of(_definition(name)) is effects
