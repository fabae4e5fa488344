"""The public delegate: claims nodes that a device can run and leaves the others, with reasons, to the CPU."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from litecl.delegate import disk
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.delegation import CLDelegation
from litecl.delegate.devices import check, devices
from litecl.delegate.naming import listed
from litecl.delegate.progress import is_followed, told_to
from litecl.delegate.region import REGION
from litecl.delegate.report import log
from litecl.interpreter import limits
from litecl.interpreter.dynamic_range import quantized_as, with_scales_of
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Model, TensorSpec

if TYPE_CHECKING:
    from litecl.delegate.warm_up import Warming


class CLDelegate(CLOptions):
    """Runs parts of a model on an OpenCL device; pass it as ``Interpreter(model, delegates=[CLDelegate()])``.

    The logger ``litecl`` reports which device was chosen, what was compiled and where it is cached (INFO), why nodes
    stay on the CPU (DEBUG), and what went wrong (WARNING).
    """

    __doc__ = f"{__doc__}\n{CLOptions.__doc__}"

    @classmethod
    def from_strings(cls, options: Mapping[Any, Any]) -> Self:
        """Create a delegate from options as strings, as ``load_delegate`` takes them. Raises DelegateError."""
        from litecl.delegate.claim.strings import parsed

        return cls(**parsed(options))

    def apply(
        self, model: Model, specs: Sequence[Sequence[TensorSpec]], *, preserve_all_tensors: bool = False
    ) -> "CLDelegation | Warming":
        """Partition, plan and build, or start that in the background (``warm_up``); see ``Delegate.apply``.

        Raises DeviceNotFound if a named device does not exist, DelegateError if another CLDelegate has taken the
        model's nodes, and, if ``strict``, for any failure of the device.
        """
        _require_first(model)
        model = quantized_as(model, self.dynamic_range)
        specs = with_scales_of(model, specs)
        if self.warm_up == "background" and limits.active() is None:  # limits count only this thread's work
            from litecl.delegate.warm_up import Warming

            check(self.device, disk.folder(self.cache_dir))
            return Warming(model, partial(CLDelegation, model, specs, self, preserve_all_tensors), self.progress)
        delegation = CLDelegation(model, specs, self, preserve_all_tensors)
        with told_to(self.progress):
            delegation.prepare()
        if is_followed():
            log(delegation.report())
        return delegation


def _require_first(model: Model) -> None:
    """Raise DelegateError if another CLDelegate came first: it has claimed every node that this one would."""
    if any(node.op.name == REGION for graph in model.subgraphs for node in graph.nodes):
        raise DelegateError(
            "two CLDelegates for one model: the first has claimed its nodes. Pass one, for one device of: "
            f"{listed(devices())}"
        )
