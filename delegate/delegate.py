"""The public delegate: claims what an OpenCL device can run and leaves the rest, with reasons, to the CPU."""

from collections.abc import Sequence

from litecl.delegate.claim.options import CLOptions
from litecl.delegate.delegation import CLDelegation
from litecl.interpreter.graph import Model, TensorSpec


class CLDelegate(CLOptions):
    """Runs parts of a model on an OpenCL device; pass it as ``Interpreter(model, delegates=[CLDelegate()])``.

    device: its index in ``litecl devices``, a fragment of its name, a pyopencl Device, or what a back end of yours has
        found; None picks a GPU if there is one, else the CPU device that suits the model. num_threads: on a CPU
        device, 1 picks the one that runs in the calling thread; others are a bound where the device can be divided,
        which PoCL 7.1's cannot.
    precision: "fp32", or "fp16", which stores large weights (over 2**18 elements) of convolutions, matrix products and
        LSTMs as halves, but for those of Winograd's algorithm; activations and arithmetic are float32 in both.
    max_delegated_partitions: keep only so many regions, the largest; None keeps all. min_nodes_per_partition: leave
        smaller regions to the CPU. allow_ops, deny_ops: operator names; deny_nodes: node positions of subgraph 0, or
        (subgraph, node) pairs.
    cache_dir: where program binaries and tunings are kept: "auto" is ``~/.cache/litecl``, None keeps none.
    tuning: None takes what ``litecl devices --tuning`` has measured on the device, or else the defaults.
    profile: take device times of every launch. strict: raise DelegateError where the device fails, instead of
        leaving the region to the CPU, or to a queue where it cannot be linked. Refusing an operator is no failure.
    max_loop_iterations: of a WHILE on the device each time it runs; one that goes on raises ModelError, and variables
        are as they were before. None lets it go on. On a CPU device a loop runs within one kernel, which nothing
        interrupts; queued loops, as on a GPU, hear Ctrl-C. queue_loops: queue them on a CPU device too.
    custom_ops: device operators of your own, for the records given to ``Interpreter(custom_ops=...)``. Their launches
        name a kernel file by its absolute path, without ``.cl``; it is written as those of litecl are.
    """

    def apply(
        self, model: Model, specs: Sequence[Sequence[TensorSpec]], *, preserve_all_tensors: bool = False
    ) -> CLDelegation:
        """Partition, plan and build; see ``Delegate.apply``. Raises DelegateError only if ``strict``."""
        delegation = CLDelegation(model, specs, self, preserve_all_tensors)
        delegation.prepare()
        return delegation
