import onnxruntime
import tf2onnx
from helper import RNG, keep, model

for name in ("mlcommons-tiny/pretrainedResnet.tflite", "mlcommons-tiny/ad01_fp32.tflite"):
    converted, _ = tf2onnx.convert.from_tflite(model(name), opset=15)
    for value in converted.graph.value_info:
        keep(f"{name} {value.name}", [dim.dim_value for dim in value.type.tensor_type.shape.dim])
    session = onnxruntime.InferenceSession(converted.SerializeToString())
    (given,) = session.get_inputs()
    shape = [size if isinstance(size, int) else 1 for size in given.shape]
    (scores,) = session.run(None, {given.name: RNG.random(shape, dtype="float32")})
    keep(name, scores)
