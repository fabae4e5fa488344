import builtins
import runpy
import sys
from pathlib import Path

from helper import PROGRAM, keep, model, photo
from PIL import Image

Image.fromarray(photo()).save("photo.bmp")
Path("labels.txt").write_text("\n".join(f"class {i}" for i in range(1001)))
path = model("google-coral-test_data/mobilenet_v1_0.25_128_quant.tflite")
sys.argv = ["label_image.py", "-i", "photo.bmp", "-m", path, "-l", "labels.txt", "--num_threads", "2"]
printed = []
builtins.print = lambda *words, **_: printed.append(" ".join(map(str, words)))
runpy.run_path(str(PROGRAM), run_name="__main__")
keep("printed", [line for line in printed if not line.startswith("time")])
