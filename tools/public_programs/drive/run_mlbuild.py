from pathlib import Path

from helper import keep, model, stub

stub("coremltools", "mlbuild.backends.coreml", "mlbuild.backends.coreml.exporter")
stub("mlbuild.backends.coreml.backend")
from mlbuild.backends.tflite.benchmark_runner import TFLiteBenchmarkRunner
from mlbuild.backends.tflite.deep_profiler import TFLiteDeepProfiler

path = Path(model("mlcommons-tiny/pretrainedResnet.tflite"))
result = TFLiteBenchmarkRunner().benchmark(path, runs=3, warmup=1, batch_size=2)
keep("runs", [result["runs_completed"], result["failures"], result["batch_size"]])
quantized = Path(model("mlcommons-tiny/pretrainedResnet_quant.tflite"))
for row in TFLiteDeepProfiler(path).profile_quant_sensitivity(path, quantized, num_samples=5):
    keep("errors", [row.mse, row.mae, row.cosine_similarity, row.max_abs_error])
