"""A model prepared for export: loaded, resized, and planned for a machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litecl.delegate import disk
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.delegate import CLDelegate
from litecl.delegate.delegation import CLDelegation
from litecl.delegate.export.device import ExportFound
from litecl.delegate.export.image import Constants, Image, first_variables, image_of
from litecl.delegate.export.machines import ExportMachine
from litecl.delegate.export.small import small_tuning, smaller
from litecl.delegate.report import DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Model, Shape, Signature


@dataclass(frozen=True, eq=False)
class Draft:
    """The images of signatures with their constants, and how to compile them: for which machine, with which options.

    images: by signature's key, or "" for the only one.
    """

    images: Mapping[str, Image]
    constants: bytes
    machine: ExportMachine
    options: CLOptions
    report: DelegationReport

    @property
    def arena_bytes(self) -> int:
        """The size of the arena, which signatures share."""
        return max(1, *(image.arena_bytes for image in self.images.values()))

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
    small: bool = False,
    **options: Any,
) -> Draft:
    """Plan a model for a machine. signature: the key of the one to export; None means all. shapes: of inputs, by name.
    small: prefer little code to speed. options: of ``CLDelegate``.

    Raises ModelError for a damaged model, an unknown signature or name, and DelegateError, with nodes and reasons, if
    the machine cannot run all of it.
    """
    if small:
        machine = smaller(machine)
    device = ExportFound(machine.compiler())
    tuning = small_tuning(device.target().vector_width) if small else machine.tuning
    delegate = CLDelegate(device=device, num_threads=1, strict=True, **{"tuning": tuning, **options})
    interpreter = Interpreter(model, delegates=[delegate])
    chosen = _signatures(interpreter.model, signature)
    for name, shape in (shapes or {}).items():
        having = [each for each in chosen.values() if name in each.inputs]
        if not having:
            known = [*dict.fromkeys(name for each in chosen.values() for name in each.inputs)]
            raise ModelError(f"shapes: there is no input {name!r}; the model has {known}")
        for each in having:
            interpreter.resize_tensor_input(each.inputs[name], shape, subgraph_index=each.subgraph)
    interpreter.allocate_tensors()
    (delegation,) = interpreter._delegations
    assert isinstance(delegation, CLDelegation)
    constants, variables = Constants(), first_variables(delegation, [*chosen.values()])
    most = delegate.max_loop_iterations
    images = {key: image_of(delegation, each, most, constants, variables) for key, each in chosen.items()}
    return Draft(images, bytes(constants.content), machine, delegate, delegation.report())


def _signatures(model: Model, key: str | None) -> dict[str, Signature]:
    """Return the signatures to export; a single one has the key "". A model without any has one of tensors' names."""
    known = {signature.key: signature for signature in model.signatures}
    if key is not None:
        if key not in known:
            raise ModelError(f"signature: there is no {key!r}; the model has {[*known]}")
        return {"": known[key]}
    if len(known) > 1:
        return known
    return {"": next(iter(known.values())) if known else _unnamed(model)}


def _unnamed(model: Model) -> Signature:
    """Return a signature of subgraph 0 under its tensors' names. Raises ModelError if these do not tell them apart."""
    graph = model.subgraphs[0]
    inputs, outputs = (
        {graph.tensors[t].name or f"{kind}_{i}": t for i, t in enumerate(tensors)}
        for kind, tensors in (("input", graph.inputs), ("output", graph.outputs))
    )
    for kind, named, tensors in (("inputs", inputs, graph.inputs), ("outputs", outputs, graph.outputs)):
        if len(named) != len(tensors):
            raise ModelError(f"the model's {kind} have equal names and no signature that tells them apart")
    return Signature("", inputs, outputs)
