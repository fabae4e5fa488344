"""A runtime for MLServer, which serves a model over the Open Inference Protocol by REST and gRPC, as KServe does.

``pip install litecl mlserver 'uvloop<0.22'`` (for MLServer 1.7), write the model's path into
``model-settings.json``, then run ``mlserver start .`` here. ``tools/mlserver.sh`` tests it.
"""

import asyncio

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri

from litecl import Predictor
from litecl.errors import LiteclError


class LiteclRuntime(MLModel):
    """Serves a ``.tflite`` file; ``parameters.extra`` are options of ``Predictor``, such as "device" or "signature"."""

    async def load(self) -> bool:
        """Load and compile the model; the server says that it is ready once that is done."""
        path = await get_model_uri(self._settings)
        options = (self._settings.parameters and self._settings.parameters.extra) or {}
        self._predictor = await asyncio.to_thread(Predictor, path, **options)
        return True

    async def unload(self) -> bool:
        """Let go of the model."""
        self._predictor.close()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Run a batch in a thread, so that the server goes on answering. A wrong batch is the client's error (400)."""
        try:
            batch = {given.name: NumpyCodec.decode_input(given) for given in payload.inputs}
            results = await asyncio.to_thread(self._predictor, batch)
        except LiteclError as error:
            raise InferenceError(f"{type(error).__name__}: {error}") from error
        outputs = [NumpyCodec.encode_output(name, value) for name, value in results.items()]
        return InferenceResponse(model_name=self.name, id=payload.id, outputs=outputs)
