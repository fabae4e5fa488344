from pathlib import Path

from helper import RNG, keep, model
from pyspatialml.litert_runtime import inspect_model, run_model

path = Path(model("tensorflow-tflite-micro/trained_lstm.tflite"))
about = inspect_model(path)
keep("about", f"{about['inputs']} {about['outputs']}")
given = {each["name"]: RNG.random(each["shape"], dtype="float32") for each in about["inputs"]}
names = [each["name"] for each in about["outputs"]]
for name, value in run_model(model_path=path, inputs=given, output_names=names).items():
    keep(name, value)
