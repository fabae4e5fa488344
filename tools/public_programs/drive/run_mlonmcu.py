from types import SimpleNamespace

from helper import RNG, keep, model, stub

stub(
    "pandas",
    "yaml",
    "xdg",
    "filelock",
    "cpuinfo",
    "git",
    "elftools",
    "elftools.elf",
    "elftools.elf.elffile",
    "paramiko",
)
from mlonmcu.models.frontend import TfLiteFrontend

given = SimpleNamespace(paths=[model("mlcommons-tiny/kws_ref_model.tflite")])
frontend = TfLiteFrontend()
details = frontend.extract_model_info(given)
for place, each in enumerate(details):
    keep(f"details {place}", str(each))
(name,) = details[0]
data = {name: RNG.random(details[1][name])}
for name, value in frontend.inference(given, data, quant=True, dequant=True).items():
    keep(name, value)
