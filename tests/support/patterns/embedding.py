"""BirdNET-Analyzer: an embedding, read from the tensor before the output without asking that it be kept."""

import numpy as np
from ai_edge_litert import interpreter as tflite

interpreter = tflite.Interpreter(
    model_path="classifier.tflite",
    num_threads=2,
    experimental_op_resolver_type=tflite.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
)
interpreter.allocate_tensors()
input_index = interpreter.get_input_details()[0]["index"]
embedding_index = interpreter.get_output_details()[0]["index"] - 1
result = []
for seed in (12, 13):
    interpreter.set_tensor(input_index, np.random.default_rng(seed).uniform(0, 1, (1, 8, 8, 3)).astype(np.float32))
    interpreter.invoke()
    result.append(interpreter.get_tensor(embedding_index))
