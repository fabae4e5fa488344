from pathlib import Path

from helper import RNG, keep, model, stub

stub(
    "boto3",
    "botocore",
    "botocore.client",
    "requests",
    "pandas",
    "matplotlib",
    "matplotlib.pyplot",
    "plotly",
    "plotly.express",
    "plotly.graph_objs",
    "seaborn",
    "sklearn",
    "sklearn.metrics",
)
from helia_edge.interpreters.tflite.interpreter import TfLiteKerasInterpreter

for name, shape in (
    ("tensorflow-tflite-micro/micro_speech_quantized.tflite", (3, 1960)),
    ("tensorflow-tflite-support/mobilenet_v1_0.25_224_1_default_1.tflite", (2, 224, 224, 3)),
):
    interpreter = TfLiteKerasInterpreter(model_content=Path(model(name)).read_bytes())
    interpreter.compile()
    keep(name, interpreter.predict(RNG.standard_normal(shape).astype("float32")))
