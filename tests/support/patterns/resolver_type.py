"""A comparison with the reference kernels, by the resolver."""

import numpy as np
from ai_edge_litert import interpreter as tfl

outputs = []
for resolver in (tfl.OpResolverType.BUILTIN_REF, tfl.OpResolverType.AUTO):
    interpreter = tfl.Interpreter(
        model_path="classifier.tflite",
        experimental_op_resolver_type=resolver,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    (details,) = interpreter.get_input_details()
    interpreter.set_tensor(
        details["index"], np.random.default_rng(9).uniform(0, 1, details["shape"]).astype(np.float32)
    )
    interpreter.invoke()
    outputs.append([interpreter.get_tensor(details["index"]) for details in interpreter.get_tensor_details()[:8]])
result = [float(np.abs(a - b).max()) < 1e-5 for a, b in zip(*outputs, strict=True)] + outputs[0]
