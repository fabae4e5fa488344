from pathlib import Path

from helper import keep, model, stub

stub("jsonschema", "jsonschema.exceptions", "referencing", "referencing.jsonschema")
from litert_compat.probe.runners import interpreter_outputs, seeded_feeds_for

for name in ("mlcommons-tiny/ad01_fp32.tflite", "sipeed-TinyMaix/mnist_resnet_f.tflite", "mattn-go-tflite/iris.tflite"):
    path = Path(model(name))
    for place, value in enumerate(interpreter_outputs(path, seeded_feeds_for(path, name))):
        keep(f"{name} {place}", value)
