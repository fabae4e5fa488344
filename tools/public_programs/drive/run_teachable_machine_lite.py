from pathlib import Path

from helper import keep, model, photo
from PIL import Image
from teachable_machine_lite import TeachableMachineLite

Image.fromarray(photo()).save("photo.png")
Path("labels.txt").write_text("\n".join(f"{i} name{i}" for i in range(1001)))
machine = TeachableMachineLite(model("google-coral-test_data/mobilenet_v1_0.25_128_quant.tflite"), "labels.txt")
for name, value in machine.classify_image("photo.png").items():
    keep(name, value)
