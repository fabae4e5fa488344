"""``make demo``: converts a Keras model of convolutions and LSTMs, runs it on devices, checks the answers.

The same random inputs go to Keras, to the numpy reference, to LiteRT, to the default device, and to an OpenCL device if
there is another one; the exit code is 0 only if all agree, devices took the whole model, and nothing failed there.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from litecl.cli.quiet import load_tensorflow
from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.backend.protocols import FoundDevice
from litecl.delegate.devices import devices
from litecl.delegate.report import summary
from litecl.errors import DelegateError, LiteclError
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.feeds import Runtime, difference, outputs_of, prepare
from litecl.perf.timing import Stats, in_turns

SHAPE = (1, 96, 64, 1)  # batch, time, frequency, channel
INVOKES = 5
ROUNDS = 40
TOLERANCE = 1e-4  # float32 sums in a different order, through two recurrent layers


@dataclass(frozen=True)
class Findings:
    """Findings of the demonstration: the largest differences, times by runtime, reports, and devices left out."""

    size_bytes: int
    differences: Mapping[str, float]
    times: Mapping[str, Stats]
    reports: Sequence[DelegationReport]
    left_out: Sequence[str]

    @property
    def faults(self) -> list[str]:
        """Return what is wrong; empty if all is well."""
        found = [f"differs from {name}: {d:.1e}" for name, d in self.differences.items() if not d <= TOLERANCE]
        for report in self.reports:
            on_cpu = sum(not row.claimed for row in report.nodes)
            found += (
                [f"{report.device}: {on_cpu} nodes stay on the CPU, for the reasons in the report"] if on_cpu else []
            )
            found += [f"{report.device}: {warning}" for warning in report.warnings]
        return found


def main() -> int:
    """Run the demonstration; 0 if every answer agrees."""
    console = Console()
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    try:
        with Progress(*columns, console=Console(stderr=True)) as progress:
            findings = demonstrate(_Steps(progress).begin)
    except LiteclError as error:
        console.print(f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ()), sep="\n", markup=False)
        return 1
    _show(console, findings)
    for fault in findings.faults:
        console.print(f"FAULT: {fault}", style="bold red", markup=False)
    return 1 if findings.faults else 0


class _Steps:
    """One progress bar per step, the last one running."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._total = 1

    def begin(self, doing: str, total: int = 1) -> Callable[[], None]:
        """End the previous step; return a function that advances this one."""
        if self._task is not None:
            self._progress.update(self._task, total=self._total, completed=self._total)
        task = self._progress.add_task(doing, total=total if total > 1 else None)
        self._task, self._total = task, total
        return lambda: self._progress.advance(task)


def demonstrate(begin: Callable[..., Callable[[], None]]) -> Findings:
    """Build, convert, run, compare and measure. ``begin`` starts a step of the progress display."""
    rng = np.random.default_rng(7)
    begin("loading TensorFlow, building a Keras model")
    load_tensorflow()
    model = spectrogram_classifier(SHAPE, rng)
    begin("converting it to a .tflite file")
    content = _convert(model)
    begin("compiling its kernels for the device")
    opened = [_on(content, None)]
    others: dict[str, Runtime] = {"the numpy reference": Interpreter(content), **_litert(content)}
    left_out = list[str]()
    if (other := _opencl_device(DelegationReport.of(opened[0]).device, left_out)) is not None:
        begin(f"compiling them for {other.name}")
        opened.append(_on(content, other))
        others[f"litecl on {other.name}"] = opened[1]
    tick = begin("comparing", INVOKES)
    inputs = [rng.standard_normal(SHAPE).astype(np.float32) for _ in range(INVOKES)]
    differences = _compare(model, opened[0], others, inputs, tick)
    tick = begin("measuring, in turns", ROUNDS)
    runtimes = {f"litecl on {DelegationReport.of(opened[0]).device}": opened[0], **others}
    times = in_turns([runtime.invoke for runtime in runtimes.values()], ROUNDS, tick=tick)
    begin("done")()
    reports = [DelegationReport.of(device) for device in opened]
    return Findings(len(content), differences, dict(zip(runtimes, times, strict=True)), reports, left_out)


def spectrogram_classifier(shape: Sequence[int], rng: np.random.Generator) -> Any:
    """Convolutions with residuals, then two LSTMs over time; random weights everywhere.

    shape: of the input ``spectrogram``: batch, time, frequency, channel; time and frequency are multiples of 4.
    """
    from keras import Model, layers

    batch, time, frequency, _ = shape
    x = inputs = layers.Input(shape[1:], batch_size=batch, name="spectrogram")
    x = _convolution(layers, x, filters=16, strides=2)
    x = _residual(layers, x)
    x = _convolution(layers, x, filters=32, strides=2)
    x = _residual(layers, x)
    x = layers.Reshape((time // 4, frequency // 4 * 32))(x)
    x = layers.LSTM(64, return_sequences=True)(x)
    x = layers.LSTM(64)(x)
    model = Model(inputs, layers.Dense(12, activation="softmax", name="classes")(x))
    model.set_weights([_weights(rng, variable) for variable in model.weights])
    return model


def _convolution(layers: Any, x: Any, filters: int, strides: int) -> Any:
    x = layers.Conv2D(filters, 3, strides, padding="same", use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization()(x))


def _residual(layers: Any, x: Any) -> Any:
    y = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(x)
    y = layers.ReLU()(layers.BatchNormalization()(y))
    y = layers.Conv2D(x.shape[-1], 1, use_bias=False)(y)
    return layers.ReLU()(layers.Add()([x, layers.BatchNormalization()(y)]))


def _weights(rng: np.random.Generator, variable: Any) -> Array:
    """Random values that keep activations of order one, so that a wrong kernel shows."""
    shape = tuple(variable.shape)
    if variable.name in ("gamma", "moving_variance"):
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    depthwise = len(shape) == 4 and shape[-1] == 1
    fan_in = 25 if len(shape) == 1 else np.prod(shape[:2] if depthwise else shape[:-1])
    values: Array = rng.standard_normal(shape) * np.sqrt(2 / fan_in)
    return values.astype(np.float32)


def _on(content: bytes, device: FoundDevice | None) -> Interpreter:
    interpreter = Interpreter(content, delegates=[CLDelegate(device)])
    interpreter.allocate_tensors()
    return interpreter


def _opencl_device(default: str, left_out: list[str]) -> FoundDevice | None:
    """Return the first OpenCL device that is not the default one and builds kernels. left_out: gets those that do not,
    with the reason.
    """
    for found in devices():
        if found.name not in (default, "native"):
            try:
                found.target()
                return found
            except DelegateError as error:
                left_out.append(f"left out: {found.name}: {summary(error)}")
    return None


def _convert(model: Any) -> bytes:
    from litecl.converter import Converter

    content: bytes = Converter.from_keras_model(model, input_shapes={"spectrogram": SHAPE}).convert()
    return content


def _litert(content: bytes) -> dict[str, Runtime]:
    """LiteRT with one thread and with all, if it is installed."""
    try:
        from ai_edge_litert.interpreter import Interpreter as LiteRt
    except ModuleNotFoundError:
        return {}
    counts = sorted({1, os.cpu_count() or 1})
    return {f"LiteRT, {n} thread{'s' * (n > 1)}": LiteRt(model_content=content, num_threads=n) for n in counts}


def _compare(
    model: Any, device: Runtime, others: Mapping[str, Runtime], inputs: Sequence[Array], tick: Callable[[], None]
) -> dict[str, float]:
    """Return the largest difference of the device from all others, over several invokes of one interpreter."""
    largest = dict.fromkeys(("Keras", *others), 0.0)
    for x in inputs:
        got = _run(device, x)
        largest["Keras"] = max(largest["Keras"], difference(got, [np.asarray(model(x, training=False))]))
        for name, other in others.items():
            largest[name] = max(largest[name], difference(got, _run(other, x)))
        tick()
    return largest


def _run(runtime: Runtime, x: Array) -> list[Array]:
    prepare(runtime, {details["name"]: x for details in runtime.get_input_details()})
    runtime.invoke()
    return outputs_of(runtime)


def _show(console: Console, findings: Findings) -> None:
    title = f"answers, {INVOKES} invokes"
    differences = Table("compared with", "largest difference", title=title, title_justify="left")
    for name, value in findings.differences.items():
        differences.add_row(name, f"{value:.1e} of the output's magnitude")
    times = Table("runtime", "median ms", "min ms", title=f"times, {ROUNDS} rounds in turns", title_justify="left")
    for name, stats in findings.times.items():
        times.add_row(name, f"{stats.median_ms:.3f}", f"{stats.min_ms:.3f}")
    console.print(f"a model of {findings.size_bytes / 1024:.0f} KiB: convolutions and LSTMs", highlight=False)
    for report in findings.reports:
        console.print(Text(str(report)), soft_wrap=True)
    for line in findings.left_out:
        console.print(Text(line), soft_wrap=True)
    console.print(differences, times)


if __name__ == "__main__":
    sys.exit(main())
