from helper import RNG, keep, model
from litert_quantizer import quantizer, recipe
from litert_quantizer.utils.validation_utils import ValidationErrorMetric

source = model("google-ai-edge-ai-edge-quantizer/conv_fc_mnist.tflite")
work = quantizer.Quantizer(source)
work.load_quantization_recipe(recipe.static_wi8_ai8())
samples = {"serving_default": [{"conv2d_input": RNG.random((1, 28, 28, 1), dtype="float32")} for _ in range(8)]}
calibration = work.calibrate(samples)
for name, statistics in sorted(calibration.items()):
    for key, value in statistics.items():
        keep(f"{name} {key}", value)
made = work.quantize(calibration)
keep("bytes", len(made.quantized_model))
errors = work.validate(samples, use_xnnpack=False, error_metrics=[ValidationErrorMetric.MSE]).get_all_tensor_results()
for tensor, found in sorted(errors.items()):
    keep(f"error {tensor}", list(found.values()) if isinstance(found, dict) else found)
