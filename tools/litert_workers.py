"""LiteRT in the place of litecl in the workers of an engine; imported there, so no part of the command itself."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from litecl.interpreter.graph import Array
from litecl.jobs import engines, job
from litecl.jobs.job import Done, Job


class LiteRTPredictor:
    """LiteRT with what a job asks of a ``Predictor``, on batches of one size."""

    def __init__(self, model: str, **options: Any) -> None:
        from ai_edge_litert.interpreter import Interpreter

        self._interpreter = Interpreter(model, num_threads=1)
        (self._input,), (self._output,) = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        self.inputs = {self._input["name"]: (tuple(self._input["shape_signature"]), self._input["dtype"])}
        self.outputs = [self._output["name"]]
        self.devices = ["LiteRT"]

    def map(self, batches: Iterable[dict[str, Array]]) -> Iterator[dict[str, Array]]:
        """Yield the results of batches."""
        for batch in batches:
            (value,) = batch.values()
            if tuple(self._interpreter.get_input_details()[0]["shape"]) != value.shape:
                self._interpreter.resize_tensor_input(self._input["index"], value.shape)
                self._interpreter.allocate_tensors()
            self._interpreter.set_tensor(self._input["index"], value)
            self._interpreter.invoke()
            yield {self.outputs[0]: self._interpreter.get_tensor(self._output["index"])}


_litert = lru_cache(maxsize=1)(LiteRTPredictor)


def litert_part(job_: Job, number: int) -> Done:
    """Run a part by LiteRT, which is what this process does from then on."""
    job._predictor = lambda *_: _litert(job_.model)  # type: ignore[assignment]
    return job.run_part(job_, number)


class LiteRTParts(engines.RunParts):
    """Actors of Ray's that run LiteRT."""

    def __init__(self, job_: Job) -> None:
        super().__init__(job_)
        job._predictor = lambda *_: _litert(job_.model)  # type: ignore[assignment]
