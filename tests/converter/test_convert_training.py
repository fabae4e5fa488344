"""Models that train: their steps against TensorFlow's, and what they save."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import keras  # noqa: E402

from litecl.converter import Converter  # noqa: E402
from litecl.delegate import CLDelegate  # noqa: E402
from litecl.interpreter import Interpreter, checkpoint_ops  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from support.conversion import litert, operators  # noqa: E402
from support.training_models import Trained, batches, convolutional, dense, small  # noqa: E402

_TOLERANCE = 1e-4
raw = tf.raw_ops


def _content(module: Trained, folder: Path) -> bytes:
    signatures = {key: function.get_concrete_function() for key, function in module.functions.items()}
    tf.saved_model.save(module, folder / "saved_model", signatures=signatures)
    return Converter.from_saved_model(folder / "saved_model").convert()


def test_a_hundred_steps_of_the_guide(tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    module = Trained(dense(), "sgd")
    content = _content(module, tmp_path)
    (tmp_path / "model.tflite").write_bytes(content)
    ours = Interpreter(model_content=content, custom_ops=checkpoint_ops(tmp_path))
    data = batches((28, 28)) * 20
    losses = [float(module.functions["train"](x, y)["loss"]) for x, y in data]
    assert losses[-1] < losses[0] - 0.5
    wanted = module.functions["infer"](data[0][0])["logits"].numpy()
    for runtime in (ours, litert(content)):
        train, infer = (runtime.get_signature_runner(key) for key in ("train", "infer"))
        np.testing.assert_allclose([train(x=x, y=y)["loss"] for x, y in data], losses, _TOLERANCE)
        np.testing.assert_allclose(infer(x=data[0][0])["logits"], wanted, _TOLERANCE, _TOLERANCE)
    assert {op for op in operators(read(content)) if op.startswith("litecl")} == {"litecl.Save", "litecl.Restore"}
    ours.get_signature_runner("save")(checkpoint_path=np.array("trained.ckpt"))
    with np.load(tmp_path / "trained.ckpt") as saved:
        for weights in module.model.weights:
            np.testing.assert_allclose(saved[weights.path], weights.numpy(), _TOLERANCE, 1e-6)
    np.save(tmp_path / "x.npy", data[0][0])
    result = _in_a_new_process(tmp_path)
    np.testing.assert_array_equal(result, ours.get_signature_runner("infer")(x=data[0][0])["logits"])


def _in_a_new_process(folder: Path) -> Any:
    program = """
import numpy as np
from litecl.interpreter import Interpreter, checkpoint_ops
model = Interpreter("model.tflite", custom_ops=checkpoint_ops("."))
model.get_signature_runner("restore")(checkpoint_path=np.array("trained.ckpt"))
np.save("logits.npy", model.get_signature_runner("infer")(x=np.load("x.npy"))["logits"])
"""
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
    return np.load(folder / "logits.npy")


@pytest.mark.parametrize(
    ("build", "optimizer", "on_device"),
    [(convolutional, keras.optimizers.Adam(0.01), False), (small, keras.optimizers.SGD(0.1), True)],
    ids=["convolutional", "small"],
)
def test_steps_of_convolutional_networks(build: Callable[[], Any], optimizer: Any, on_device: bool) -> None:
    keras.utils.set_random_seed(1)
    module = Trained(build(), optimizer)
    functions = [module.functions[key].get_concrete_function() for key in ("train", "infer")]
    content = Converter.from_concrete_functions(functions, module).convert()
    data = batches(module.model.input_shape[1:], size=4) * 2
    losses = [float(module.functions["train"](x, y)["loss"]) for x, y in data]
    wanted = module.functions["infer"](data[0][0])["logits"].numpy()
    delegates = [[], [CLDelegate()]] if on_device else [[]]
    for runtime in (litert(content), *(Interpreter(model_content=content, delegates=given) for given in delegates)):
        train, infer = (runtime.get_signature_runner(key) for key in ("train", "infer"))
        np.testing.assert_allclose([train(x=x, y=y)["loss"] for x, y in data], losses, _TOLERANCE)
        largest = np.abs(wanted).max()
        np.testing.assert_allclose(infer(x=data[0][0])["logits"], wanted, 10 * _TOLERANCE, 10 * _TOLERANCE * largest)


_RATES = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "rho": 0.9, "momentum": 0.8, "epsilon": 1e-3, "alpha": 0.1}
_POWERS = {"beta1_power": 0.9, "beta2_power": 0.99}
_STEPS: Mapping[str, Mapping[str, Any]] = {
    "ResourceApplyGradientDescent": {},
    "ResourceApplyMomentum": {},
    "ResourceApplyMomentum nesterov": {"use_nesterov": True},
    "ResourceApplyKerasMomentum": {},
    "ResourceApplyKerasMomentum nesterov": {"use_nesterov": True},
    "ResourceApplyAdam": {},
    "ResourceApplyAdam nesterov": {"use_nesterov": True},
    "ResourceApplyAdamWithAmsgrad": {},
    "ResourceApplyAdaMax": {},
    "ResourceApplyRMSProp": {},
    "ResourceApplyCenteredRMSProp": {},
    "ResourceApplyAdagrad": {},
    "ResourceApplyAdagrad without slots": {"update_slots": False},
    "ResourceApplyAdagradV2": {},
    "ResourceApplyAdadelta": {},
}


class Steps(tf.Module):
    """A step of every optimizer on variables of its own, with slots that hold something already."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(2)
        # Of a mean of squares and the square of a mean, which the centred step subtracts, the former is the larger.
        self.slots = {
            name: [
                tf.Variable(random.uniform(0.1 + 0.5 * i, 0.4 + 0.5 * i, (2, 3)).astype(np.float32)) for i in range(4)
            ]
            for name in _STEPS
        }

    @tf.function(input_signature=[tf.TensorSpec((2, 3))], autograph=False)
    def step(self, x: Any) -> Any:
        """Return what all variables hold after the steps."""
        results = []
        for name, attributes in _STEPS.items():
            op, variables = name.split()[0], list(self.slots[name])
            signature = tf.raw_ops.__dict__[op].__signature__.parameters
            arguments: dict[str, Any] = {}
            for argument in signature:
                if argument in ("grad", "delta"):
                    arguments[argument] = x
                elif argument in (_RATES | _POWERS):
                    arguments[argument] = (_RATES | _POWERS)[argument]
                elif argument not in ("name", "use_locking", "use_nesterov", "update_slots"):
                    arguments[argument] = variables.pop(0).handle
            tf.raw_ops.__dict__[op](**arguments, **attributes)
            results += [variable.read_value() for variable in self.slots[name]]
        return results


def test_steps_of_optimizers() -> None:
    module = Steps()
    content = Converter.from_concrete_functions([module.step.get_concrete_function()], module).convert()
    runtimes = [litert(content), Interpreter(model_content=content)]
    random = np.random.default_rng(4)
    for _ in range(3):
        x = random.standard_normal((2, 3)).astype(np.float32)
        wanted = [value.numpy() for value in module.step(x)]
        for runtime in runtimes:
            got = runtime.get_signature_runner()(x=x)
            for i, value in enumerate(wanted):
                np.testing.assert_allclose(got[f"output_{i}"], value, 1e-5, 1e-6, err_msg=list(_STEPS)[i // 4])


def test_a_part_of_a_tensor_is_not_restored() -> None:
    def restore(path: Any) -> Any:
        return raw.RestoreV2(prefix=path, tensor_names=["x"], shape_and_slices=["4 0,2"], dtypes=[tf.float32])

    function = tf.function(restore).get_concrete_function(tf.TensorSpec([], tf.string))
    with pytest.raises(ConversionError, match="whole ones"):
        Converter.from_concrete_functions([function]).convert()


def test_checkpoints_of_the_second_version(tmp_path: Path) -> None:
    variable = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def save(path: Any) -> Any:
        raw.SaveV2(prefix=path, tensor_names=["a", "b"], shape_and_slices=["", ""], tensors=[variable, [3, 4, 5]])
        return path

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def restore(path: Any) -> Any:
        types = [tf.int32, tf.float32]
        b, a = raw.RestoreV2(prefix=path, tensor_names=["b", "a"], shape_and_slices=["", ""], dtypes=types)
        variable.assign(2 * tf.ensure_shape(a, (2,)))
        return variable.read_value(), tf.ensure_shape(b, (3,))

    functions = [save.get_concrete_function(), restore.get_concrete_function()]
    content = Converter.from_concrete_functions(functions).convert()
    model = Interpreter(model_content=content, custom_ops=checkpoint_ops(tmp_path))
    model.get_signature_runner("save")(path=np.array("file"))
    result = model.get_signature_runner("restore")(path=np.array(str(tmp_path / "file")))
    assert {key: value.tolist() for key, value in result.items()} == {"output_0": [2, 4], "output_1": [3, 4, 5]}
