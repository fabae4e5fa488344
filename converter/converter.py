"""The public converter: TensorFlow models in, the bytes of a .tflite file out."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from litecl.converter import pipeline
from litecl.converter.emit import emit
from litecl.converter.graph import Module
from litecl.interpreter import writer
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Model

Shapes = Mapping[str, Sequence[int | None]]

_DEFAULT_SIGNATURE = "serving_default"


class Converter:
    """Converts a model of TensorFlow to TensorFlow Lite, with TFLite's builtin operators only.

    Made by one of the ``from_*`` constructors. ``input_shapes`` maps names of inputs to shapes that they are to have;
    None or -1 in a shape leaves a dimension open. TensorFlow is imported when one of them is called.
    """

    def __init__(self, load: Callable[[], dict[str, Module]], keep: Any = None) -> None:
        self._load = load
        self._keep = keep  # a ConcreteFunction holds its variables only weakly

    @classmethod
    def from_keras_model(cls, model: Any, input_shapes: Shapes | None = None) -> "Converter":
        """A Keras 3 model, in inference mode: Sequential, functional, or subclassed and called once."""
        return cls(lambda: {_DEFAULT_SIGNATURE: _frontends().from_keras_model(model, input_shapes)})

    @classmethod
    def from_saved_model(
        cls,
        saved_model_dir: str | Path,
        signature_keys: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        input_shapes: Shapes | None = None,
    ) -> "Converter":
        """A SavedModel, by default its signature ``serving_default``; several signatures become several subgraphs."""
        keys = list(signature_keys or [_DEFAULT_SIGNATURE])
        return cls(lambda: _frontends().from_saved_model(saved_model_dir, keys, tags, input_shapes))

    @classmethod
    def from_concrete_functions(
        cls, funcs: Sequence[Any], trackable_obj: Any = None, input_shapes: Shapes | None = None
    ) -> "Converter":
        """ConcreteFunctions, as ``tf.function(...).get_concrete_function(...)`` gives them.

        trackable_obj: what holds the variables, kept alive until ``convert``.
        """
        functions = list(funcs)
        if not functions:
            raise ConversionError("expected at least one ConcreteFunction, got none")
        return cls(lambda: _frontends().from_concrete_functions(functions, input_shapes), keep=trackable_obj)

    @classmethod
    def from_frozen_graph(
        cls,
        graph_def_file: str | Path,
        input_arrays: Sequence[str],
        output_arrays: Sequence[str],
        input_shapes: Shapes | None = None,
    ) -> "Converter":
        """A GraphDef without variables (.pb or .pbtxt), between named tensors."""
        return cls(
            lambda: {
                _DEFAULT_SIGNATURE: _frontends().from_frozen_graph(
                    graph_def_file, input_arrays, output_arrays, input_shapes
                )
            }
        )

    def convert(self) -> bytes:
        """The content of a .tflite file. Raises ConversionError that names what cannot be converted and where it is."""
        return writer.write(self.convert_to_model())

    def convert_to_model(self) -> Model:
        """The model as data, as ``litecl.interpreter.Interpreter`` takes it too."""
        modules = self._load()
        from litecl.converter.importer.execute import evaluate, infer_shapes

        pipeline.run(list(modules.values()), evaluate, infer_shapes)
        return emit(modules)


def _frontends() -> Any:
    # TensorFlow is imported late: it takes seconds and half a gigabyte.
    from litecl.converter.importer import frontends

    return frontends
