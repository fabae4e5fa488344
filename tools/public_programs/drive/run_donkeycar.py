import runpy
import sys

from helper import PROGRAM, RNG, keep, model, stub

stub("pyfiglet", "donkeycar.management", "prettytable", "progress", "progress.bar", "pynmea2", "simple_pid", "paho")
stub("moviepy", "pandas", "albumentations", "tornado", "requests", "matplotlib", "kivy", "psutil")
import donkeycar.utils
from donkeycar.parts.interpreter import TfLite

with_signature = TfLite()
with_signature.load(model("google-ai-edge-ai-edge-quantizer/conv_fc_mnist.tflite"))
shape = with_signature.interpreter.get_input_details()[0]["shape"]
name = with_signature.input_keys[0]
keep("steering", with_signature.predict_from_dict({name: RNG.standard_normal(shape[1:])}))


class Frames:
    """The program's loop has no end."""

    left = 20

    def on_frame(self):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


donkeycar.utils.FPSTimer = Frames
sys.argv = ["tflite_profile.py", f"--model={model('mlcommons-tiny/pretrainedResnet.tflite')}"]
try:
    runpy.run_path(str(PROGRAM / "scripts" / "tflite_profile.py"), run_name="__main__")
except KeyboardInterrupt:
    keep("frames left", Frames.left)
