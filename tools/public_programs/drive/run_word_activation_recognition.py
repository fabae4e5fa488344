import contextlib
import os
import re
from pathlib import Path

from helper import RNG, keep, stub, voice

loudness, microphone = stub("librosa.feature", "librosa"), stub("pyaudio", "sounddevice")


class Stream:
    def __init__(self, callback, **_):
        self.callback = callback

    def __enter__(self):
        for _ in range(3):
            self.callback(voice(1024 / 16000)[:, None], 1024, None, None)
        raise KeyboardInterrupt

    def __exit__(self, *_):
        pass


microphone.InputStream = Stream
import word_activation_recognition as package

os.chdir(Path(package.__file__).parent)
from tflite_runtime.interpreter import Interpreter
from word_activation_recognition import word_recognition

said = []
word_recognition.print = lambda *words, **_: said.append(" ".join(map(str, words)))
shape = Interpreter("models/star_trek_activation_phrase_v2.tflite").get_input_details()[0]["shape"]
loudness.power_to_db = lambda _: RNG.standard_normal(shape[1:]).astype("float32").T
with contextlib.suppress(SystemExit):
    word_recognition.main()
numbers = [re.findall(r"[\d.]+e?-?\d*", line) for line in said]
keep("scores", [[float(each) for each in found] for found in numbers if found])
keep("said", [re.sub(r"[\d.]+(e-?\d+)?", "#", line) for line in said])
