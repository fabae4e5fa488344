import json
import shutil
from pathlib import Path

from helper import keep, model, photo, stub
from PIL import Image

stub("matplotlib", "matplotlib.colors", "matplotlib.cm", "requests")
from lobe import ImageModel

Path("saved").mkdir(exist_ok=True)
shutil.copy(model("tensorflow-tflite-support/mobilenet_v1_0.25_224_1_default_1.tflite"), "saved/model.tflite")
classes = [f"class {i}" for i in range(1001)]
signature = {
    "doc_id": "1",
    "doc_name": "mobilenet",
    "doc_version": "1",
    "format": "tf_lite",
    "filename": "model.tflite",
    "export_model_version": 1,
    "tags": [],
    "classes": {"Label": classes},
    "inputs": {"Image": {"dtype": "float32", "shape": [None, 224, 224, 3], "name": "input"}},
    "outputs": {
        "Confidences": {"dtype": "float32", "shape": [None, 1001], "name": "MobilenetV1/Predictions/Reshape_1"}
    },
}
Path("saved/signature.json").write_text(json.dumps(signature))
result = ImageModel.load("saved").predict(Image.fromarray(photo()))
keep("label", result.prediction)
keep("confidences", [confidence for _, confidence in sorted(result.labels)])
