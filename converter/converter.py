"""The public converter: takes a model of TensorFlow, PyTorch or ONNX, returns the bytes of a .tflite file."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from litecl.converter import causal_lm
from litecl.converter.carried_states import carry_states
from litecl.converter.copies import copy_handed_on
from litecl.converter.emit import emit
from litecl.converter.fusions import FUSIONS, Fusion
from litecl.converter.graph import Module
from litecl.converter.keywords import Options, check
from litecl.converter.pipeline import Observe, Pipeline, Tools, placed
from litecl.converter.quantization.half_safe import half_safe
from litecl.converter.quantization.options import Quantization, Weights, declared
from litecl.converter.quantization.quantize import quantize
from litecl.converter.quantization.recipes.priced import Progress, silent
from litecl.converter.records import Shapes, Source
from litecl.converter.report import ConversionReport, ConversionWarning
from litecl.converter.tflite_attributes import TargetSpec, TFLiteAttributes
from litecl.converter.unrolled.roll_up import roll_up
from litecl.interpreter.errors import ConversionError, MissingExtra
from litecl.interpreter.file import reader, writer
from litecl.interpreter.graph import Model
from litecl.interpreter.resizes import with_one_option

_DEFAULT_SIGNATURE = "serving_default"


class Converter(TFLiteAttributes):
    """Converts a model of TensorFlow, PyTorch or ONNX to TensorFlow Lite, without Flex operators.

    Use one of the ``from_*`` constructors. ``input_shapes`` maps input names to shapes; None or -1 leaves a dimension
    open. ``Options`` lists the other keywords. TensorFlow is imported only when the model is converted. ``report``
    describes the last conversion. TFLiteConverter's attributes, such as ``optimizations``, work as they do there.

    keep_sources: keep each signature's original function in ``sources``, from inputs to results by name, for
        comparison.
    """

    _OWN = frozenset(
        {"_load", "_keep", "_finish", "_options", "_fusions", "_roll_up", "report", "keep_sources", "sources"}
        | {"_source_notes", "_differences"}
    )

    def __init__(
        self,
        load: Callable[["Converter"], dict[str, Module] | Model],
        keep: Any = None,
        finish: Callable[[Model], Model] = lambda model: model,
        roll_up: bool = False,
        **options: Unpack[Options],
    ) -> None:
        check(options)
        self._load = load
        self._keep = keep  # a ConcreteFunction holds its variables only weakly
        self._finish = finish
        self._roll_up = roll_up
        self._options = options
        self._fusions: list[Fusion] = []
        self._source_notes: list[str] = []
        self._differences: dict[str, float] = {}
        self.report = ConversionReport()
        self.keep_sources = False
        self.sources: dict[str, Source] = {}
        self.target_spec = TargetSpec()

    @classmethod
    def from_keras_model(
        cls, model: Any, input_shapes: Shapes | None = None, **options: Unpack[Options]
    ) -> "Converter":
        """Take a Keras 3 or tf_keras model in inference mode: Sequential, functional, or subclassed and called once."""

        def load(self: Converter) -> dict[str, Module]:
            take = _frontends().from_keras_model
            return {_DEFAULT_SIGNATURE: take(model, input_shapes, self.fuses_layers, self.keep_sources)}

        return cls(load, **options)

    @classmethod
    def from_keras_causal_lm(
        cls, model: Any, cache_length: int, prefill_lengths: Sequence[int] | None = None, **options: Unpack[Options]
    ) -> "Converter":
        """Take a causal language model of Keras 3, and give it KV caches as Google's exporter does.

        model: a KerasHub model (``keras_hub.models.CausalLM``), or a model from tokens [batch, tokens] to logits
        [batch, tokens, vocabulary] with causal ``MultiHeadAttention`` or ``GroupQueryAttention``; its padding masks are
        ignored. cache_length: tokens the caches hold. prefill_lengths: tokens per prefill call; by default 8 and 32, if
        the caches hold them.

        The signatures are ``prefill_8``, ``prefill_32``, ... and ``decode``. They take ``tokens`` [1, n], ``input_pos``
        [n] and the caches ``kv_cache_k_0``, ``kv_cache_v_0``, ..., and return the caches; decode also returns
        ``logits`` [1, 1, vocabulary]. The last logits of a text that fills the caches are compared with Keras'. Raises
        ConversionError if they differ.
        """
        lengths = causal_lm.prefills(cache_length, prefill_lengths)

        def load(self: Converter) -> dict[str, Module]:
            return _causal_lm().from_keras_causal_lm(model, cache_length, lengths)  # type: ignore[no-any-return]

        def finish(converted: Model) -> Model:
            traced = _causal_lm()
            return causal_lm.checked(converted, cache_length, partial(traced.logits_of, model), traced.tolerance(model))

        return cls(load, finish=finish, **options)

    @classmethod
    def from_saved_model(
        cls,
        saved_model_dir: str | Path,
        signature_keys: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        input_shapes: Shapes | None = None,
        **options: Unpack[Options],
    ) -> "Converter":
        """Take a SavedModel, by default with all its signatures. Each becomes a subgraph, ``serving_default`` first."""
        keys = list(signature_keys or [])

        def load(self: Converter) -> dict[str, Module]:
            take = _frontends().from_saved_model
            return take(saved_model_dir, keys, tags, input_shapes, self.keep_sources)  # type: ignore[no-any-return]

        return cls(load, **options)

    @classmethod
    def from_concrete_functions(
        cls,
        funcs: Sequence[Any],
        trackable_obj: Any = None,
        input_shapes: Shapes | None = None,
        **options: Unpack[Options],
    ) -> "Converter":
        """Take ConcreteFunctions, as returned by ``tf.function(...).get_concrete_function(...)``.

        trackable_obj: the owner of the variables, kept alive until ``convert``.
        """
        if not isinstance(funcs, Iterable):
            raise ConversionError(f"expected a list of ConcreteFunctions, got {type(funcs).__name__}")
        functions = list(funcs)
        if not functions:
            raise ConversionError("expected at least one ConcreteFunction, got none")

        def load(self: Converter) -> dict[str, Module]:
            take = _frontends().from_concrete_functions
            return take(functions, input_shapes, self.keep_sources)  # type: ignore[no-any-return]

        return cls(load, trackable_obj, **options)

    @classmethod
    def from_frozen_graph(
        cls,
        graph_def_file: str | Path,
        input_arrays: Sequence[str],
        output_arrays: Sequence[str],
        input_shapes: Shapes | None = None,
        **options: Unpack[Options],
    ) -> "Converter":
        """Take a GraphDef without variables (.pb or .pbtxt), cut at the named tensors."""
        if not isinstance(graph_def_file, str | Path):
            raise ConversionError(
                "graph_def_file: expected the path of a .pb or .pbtxt file, as tf.io.write_graph returns it, got "
                f"{type(graph_def_file).__name__}"
            )

        def load(self: Converter) -> dict[str, Module]:
            take = _frontends().from_frozen_graph
            graph = take(graph_def_file, input_arrays, output_arrays, input_shapes, self.keep_sources)
            return {_DEFAULT_SIGNATURE: graph}

        return cls(load, **options)

    @classmethod
    def from_exported_program(
        cls,
        program: Any,
        input_shapes: Shapes | None = None,
        quantize: Quantization | Weights | None = None,
        fp16_safe: Any = None,
        roll_up: bool = True,
    ) -> "Converter":
        """Take a ``torch.export.ExportedProgram`` or the path of a .pt2 file; litert-torch converts it.

        The program's dynamic dimensions stay open where operators can compute their sizes. ``input_shapes``, by the
        program's input names, fixes them. roll_up: as in ``from_tflite``. Raises ConversionError without litert-torch
        (``pip install 'litecl[torch]'``), and if litert-torch or litecl can't convert the program.
        """

        def load(self: Converter) -> Model:
            torch = _exported_program()
            given = torch.load(program) if isinstance(program, str | Path) else program
            known = torch.Program.of(given, input_shapes)
            model: Model = torch.model_of(known)
            self.sources = torch.sources_of(known, model) if self.keep_sources else {}
            return model

        return cls(load, roll_up=roll_up, quantize=quantize, fp16_safe=fp16_safe)

    @classmethod
    def from_tflite(
        cls,
        model: str | Path | bytes | Model,
        quantize: Quantization | Weights | None = None,
        fp16_safe: Any = None,
        roll_up: bool = True,
    ) -> "Converter":
        """Take a float TFLite model, by path, content or as a ``Model``, to quantize or rescale it.

        roll_up: replace an unrolled LSTM, GRU or simple recurrent layer by one operator or loop, if that is proved to
        compute the same; ``report.fusions`` lists them.
        """
        return cls(lambda self: reader.read(model), roll_up=roll_up, quantize=quantize, fp16_safe=fp16_safe)

    @classmethod
    def from_onnx(
        cls,
        path: str | Path,
        input_shapes: Shapes | None = None,
        quantize: Quantization | Weights | None = None,
        fp16_safe: Any = None,
        roll_up: bool = True,
    ) -> "Converter":
        """Take an ONNX file; onnx2tf converts it, in a process of its own.

        Inputs and outputs keep ONNX's order of dimensions. ``report.notes`` says what onnx2tf is known to change, and
        ``report.differences`` how far each output is from ONNX Runtime's on random inputs, if that is installed.
        ``input_shapes`` fixes open dimensions. roll_up: as in ``from_tflite``. Raises MissingExtra without onnx2tf
        (``pip install 'litecl[onnx]'``), ConversionError if the file can't be converted.
        """

        def load(self: Converter) -> Model:
            onnx_file = _onnx_file()
            loaded = onnx_file.load(path)
            model: Model = onnx_file.model_of(loaded, input_shapes)
            self._source_notes = [*loaded.doubts]
            self._differences = {}
            source = onnx_file.source_of(loaded, model)
            if source is None and self.keep_sources:
                raise MissingExtra("comparing with an ONNX model needs ONNX Runtime: pip install onnxruntime")
            if source is None:
                model, unknown = onnx_file.by_shape(loaded, model)
                self._source_notes += ["not compared with ONNX Runtime, which is not installed"]
                self._source_notes += [f"output {name!r} may be channels last" for name in unknown]
            else:
                model, self._differences = onnx_file.compared(loaded, model, source)
            self.sources = {model.signatures[0].key: source} if self.keep_sources else {}
            return model

        return cls(load, roll_up=roll_up, quantize=quantize, fp16_safe=fp16_safe)

    @property
    def fuses_layers(self) -> bool:
        """True if recurrent layers become fused operators rather than loops."""
        return self._options.get("lstm", "fused") != "while"

    def register_fusion(self, fusion: Fusion) -> "Converter":
        """Convert composites by ``fusion``. Later registrations are tried first, built-in fusions last."""
        self._fusions.insert(0, fusion)
        return self

    def convert(self, observe: Observe | None = None, progress: Progress = silent) -> bytes:
        """Return the content of a .tflite file.

        Raises ConversionError that says what can't be converted, and where. Warns (``ConversionWarning``) of operators
        that LiteRT lacks.

        observe: called after each pass with its name and the module. progress: called during a bit search with the
        number of layers measured so far and the total.
        """
        content = writer.write(self._converted(observe, progress))
        self.report = replace(self.report, size_bytes=len(content))
        return content

    def convert_to_model(self, observe: Observe | None = None) -> Model:
        """Return the model as data; ``litecl.interpreter.Interpreter`` takes it too."""
        return self._converted(observe)

    def _converted(self, observe: Observe | None, progress: Progress = silent) -> Model:
        how = self.asked(declared(self._options.get("quantize")))
        loaded = self._load(self)
        if isinstance(loaded, Model):
            model_in_float, report, rolls = with_one_option(loaded), self._source_report(), self._roll_up
        else:
            model_in_float, report = self._float_model(loaded, observe)
            rolls = self.fuses_layers
        rolled, records = roll_up(model_in_float) if rolls else (model_in_float, [])
        report = replace(report, fusions=[*report.fusions, *records])
        finished, data = self._finish(rolled), self._options.get("fp16_safe")
        safe, rescaled = (finished, None) if data is None else half_safe(finished, data)
        quantized, quantization = quantize(safe, how, progress)
        carried = carry_states(quantized) if self._options.get("lstm") == "variables" else quantized
        model = copy_handed_on(carried)  # last, since other steps join and drop reshapes
        self.report = replace(report.of(model), quantization=quantization, rescaled=rescaled)
        self._check_custom(model)
        if self.report.warning:
            warnings.warn(self.report.warning, ConversionWarning, stacklevel=3)  # points at the caller of convert
        return model

    def _source_report(self) -> ConversionReport:
        return ConversionReport(notes=list(self._source_notes), differences=dict(self._differences))

    def _float_model(self, modules: dict[str, Module], observe: Observe | None) -> tuple[Model, ConversionReport]:
        """Convert TensorFlow modules to a float model."""
        from litecl.converter.importer.compose import compose
        from litecl.converter.importer.execute import evaluate, infer_shapes

        pipeline = Pipeline(
            Tools(evaluate, infer_shapes, compose),
            (*self._fusions, *FUSIONS),
            self.fuses_layers,
            observe or (lambda name, module: None),
        )
        self.sources = {key: module.source for key, module in modules.items() if module.source is not None}
        pipeline.run(list(modules.values()))
        with placed(*modules.values()):
            return emit(modules), pipeline.report

    def _check_custom(self, model: Model) -> None:
        names = sorted({node.op.name for graph in model.subgraphs for node in graph.nodes if node.op.custom})
        if names and not self.allow_custom_ops:
            raise ConversionError(
                "\n  ".join(
                    [
                        f"allow_custom_ops is False, and the model has custom operators: {', '.join(names)}",
                        *map(str, dict.fromkeys(self.report.own)),
                    ]
                )
            )


def _causal_lm() -> Any:
    from litecl.converter.importer import causal_lm

    return causal_lm


def _exported_program() -> Any:
    try:
        from litecl.converter.importer import exported_program
    except ModuleNotFoundError as error:
        needed = "pip install 'litecl[torch]', in an environment without TensorFlow"
        raise ConversionError(f"converting a program of PyTorch needs litert-torch ({error}): {needed}") from error
    return exported_program


def _onnx_file() -> Any:
    try:
        from litecl.converter.importer import onnx_file
    except ModuleNotFoundError as error:
        raise MissingExtra(f"converting an ONNX model needs {error.name}: pip install 'litecl[onnx]'") from error
    return onnx_file


def _frontends() -> Any:
    # Import TensorFlow late: it takes seconds and half a gigabyte.
    from litecl.converter.importer import frontends

    return frontends
