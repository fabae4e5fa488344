"""The public delegate: claims what an OpenCL device can run and leaves the rest, with reasons, to the CPU."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Self

from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.strings import parsed
from litecl.delegate.delegation import CLDelegation
from litecl.delegate.devices import devices
from litecl.delegate.naming import listed
from litecl.delegate.progress import told_to
from litecl.delegate.region import REGION
from litecl.delegate.report import log
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Model, TensorSpec

_LOG = logging.getLogger("litecl")


class CLDelegate(CLOptions):
    """Runs parts of a model on an OpenCL device; pass it as ``Interpreter(model, delegates=[CLDelegate()])``.

    device: its index in ``litecl devices``, its name, a fragment of exactly one name, a pyopencl Device, or a device
    found by a back end of yours; None picks a GPU if there is one, else the CPU device that suits the model. A name
    that matches no device, or a fragment of several names, raises DeviceNotFound; if there is no device at all, a
    warning says what to install.
    num_threads: on a CPU, 1 picks the device that runs in the calling thread; other numbers are a limit if the device
    can be partitioned, which PoCL 7.1's cannot.
    precision: "fp32", or "fp16", which stores large weights (over 2**18 elements) of convolutions, matrix products and
    LSTMs in half precision, except those for Winograd's algorithm; activations and arithmetic are float32 in both.
    max_delegated_partitions: keep at most this many regions, the largest; None keeps all. min_nodes_per_partition:
    leave
        smaller regions to the CPU. allow_ops, deny_ops: operator names; deny_nodes: node positions of subgraph 0, or
        (subgraph, node) pairs.
    cache_dir: where program binaries and tunings are kept: "auto" is ``~/.cache/litecl``, None keeps none.
    tuning: None uses what ``litecl devices --tuning`` measured on the device, or else the defaults.
    profile: measure the device time of every launch. strict: raise DelegateError if the device fails, instead of
    leaving the region to the CPU, or to a queue if it cannot be linked. Refusing an operator is not a failure.
    max_loop_iterations: of a WHILE on the device each time it runs; beyond that it raises ModelError, and variables are
    as they were before. None sets no limit. On a CPU device a loop runs within one kernel, which cannot be interrupted;
    queued loops, as on a GPU, respond to Ctrl-C. queue_loops: queue them on a CPU device too.
    dump_passes: a folder to which every region is written as text after each pass of planning, in a folder of its own
    (``region0``).
    custom_ops: device operators of your own, for the records given to ``Interpreter(custom_ops=...)``. Their launches
    name a kernel file by its absolute path, without ``.cl``, which is written like litecl's own.
    progress: called with a ``BuildStep`` before each file is compiled, and when all files of a region are. It is not
    pickled.

    The logger ``litecl`` reports which device was chosen, what was compiled and where it is cached (INFO), why nodes
    stay on the CPU (DEBUG), and what went wrong (WARNING).
    """

    @classmethod
    def from_strings(cls, options: Mapping[Any, Any]) -> Self:
        """Make a delegate of options as strings, as ``load_delegate`` takes them. Raises DelegateError."""
        return cls(**parsed(options))

    def apply(
        self, model: Model, specs: Sequence[Sequence[TensorSpec]], *, preserve_all_tensors: bool = False
    ) -> CLDelegation:
        """Partition, plan and build; see ``Delegate.apply``.

        Raises DeviceNotFound if a named device does not exist, DelegateError if another CLDelegate has taken the
        model's nodes, and, if ``strict``, for any failure of the device.
        """
        _require_first(model)
        delegation = CLDelegation(model, specs, self, preserve_all_tensors)
        with told_to(self.progress):
            delegation.prepare()
        if _LOG.isEnabledFor(logging.INFO):
            log(delegation.report())
        return delegation


def _require_first(model: Model) -> None:
    """Raise DelegateError if another CLDelegate was applied before: it took every node that this one would."""
    if any(node.op.name == REGION for graph in model.subgraphs for node in graph.nodes):
        raise DelegateError(
            "two CLDelegates for one model: the first has taken its nodes. Give one, for one device of: "
            f"{listed(devices())}"
        )
