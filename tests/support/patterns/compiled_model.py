"""The newer API as the LiteRT samples use it."""

import numpy as np
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.hardware_accelerator import HardwareAccelerator

model = CompiledModel.from_file("classifier.tflite", hardware_accel=HardwareAccelerator.CPU)
signature = model.get_signature_by_index(0)
input_buffers, output_buffers = model.create_input_buffers(0), model.create_output_buffers(0)
requirements = model.get_output_buffer_requirements(0)
result = [signature["key"], model.is_fully_accelerated(), requirements["buffer_size"]]
for image in np.random.default_rng(13).uniform(0, 1, (3, 8, 8, 3)).astype(np.float32):
    input_buffers[0].write(image)
    model.run_by_index(0, input_buffers, output_buffers)
    result.append(output_buffers[0].read(requirements["buffer_size"] // np.float32().itemsize, np.float32))
