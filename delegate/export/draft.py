"""A model prepared for export: loaded, resized, and planned for a machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litecl.delegate import disk
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.delegate import CLDelegate
from litecl.delegate.delegation import CLDelegation
from litecl.delegate.export.device import ExportFound
from litecl.delegate.export.image import Image, image_of
from litecl.delegate.export.machines import ExportMachine
from litecl.delegate.report import DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError, ModelError
from litecl.interpreter.graph import Model, Shape, Signature


@dataclass(frozen=True, eq=False)
class Draft:
    """A signature's image, and how to compile it: for which machine, and with which options."""

    signature: Signature
    image: Image
    machine: ExportMachine
    options: CLOptions
    report: DelegationReport

    @property
    def directory(self) -> Path | None:
        """The folder where objects are cached, or None."""
        return disk.folder(self.options.cache_dir)


def draft(
    model: Path | bytes | Model,
    machine: ExportMachine,
    *,
    signature: str | None = None,
    shapes: Mapping[str, Shape] | None = None,
    **options: Any,
) -> Draft:
    """Plan a signature of a model for a machine. signature: its key; None means the only one. shapes: of inputs, by
    name. options: of ``CLDelegate``.

    Raises ModelError for a damaged model, an unknown signature or name, and DelegateError, with nodes and reasons, if
    the machine cannot run all of it.
    """
    found = ExportFound(machine.compiler())
    delegate = CLDelegate(device=found, num_threads=1, strict=True, **options)
    interpreter = Interpreter(model, delegates=[delegate])
    chosen = _signature(interpreter.model, signature)
    for name, shape in (shapes or {}).items():
        if name not in chosen.inputs:
            raise ModelError(f"shapes: there is no input {name!r}; the model has {[*chosen.inputs]}")
        interpreter.resize_tensor_input(chosen.inputs[name], shape, subgraph_index=chosen.subgraph)
    interpreter.allocate_tensors()
    (delegation,) = interpreter._delegations
    assert isinstance(delegation, CLDelegation)
    image = image_of(delegation, chosen, delegate.max_loop_iterations)
    return Draft(chosen, image, machine, delegate, delegation.report())


def _signature(model: Model, key: str | None) -> Signature:
    """Return a signature by its key; None means the only one, or subgraph 0 with tensors' names if there is none."""
    known = {signature.key: signature for signature in model.signatures}
    if key is not None:
        if key not in known:
            raise ModelError(f"signature: there is no {key!r}; the model has {[*known]}")
        return known[key]
    if len(known) > 1:
        raise DelegateError(f"the model has the signatures {', '.join(known)}: name the one to export")
    if known:
        return next(iter(known.values()))
    graph = model.subgraphs[0]
    inputs, outputs = (
        {graph.tensors[t].name or f"{kind}_{i}": t for i, t in enumerate(tensors)}
        for kind, tensors in (("input", graph.inputs), ("output", graph.outputs))
    )
    for kind, named, tensors in (("inputs", inputs, graph.inputs), ("outputs", outputs, graph.outputs)):
        if len(named) != len(tensors):
            raise ModelError(f"the model's {kind} have equal names and no signature that tells them apart")
    return Signature("", inputs, outputs)
