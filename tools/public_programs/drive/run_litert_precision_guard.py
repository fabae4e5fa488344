import json
import runpy
import sys
from pathlib import Path

from helper import keep, model

sys.argv = ["guard", model("mlcommons-tiny/pretrainedResnet.tflite"), "--backends", "cpu", "--json-output", "out.json"]
try:
    runpy.run_module("litert_precision_guard", run_name="__main__")
except SystemExit as end:
    keep("exit code", end.code or 0)


def numbers(value, name=""):
    """Keep the numbers of the report but times."""
    if isinstance(value, dict):
        for key, part in value.items():
            numbers(part, f"{name}/{key}")
    elif isinstance(value, list):
        for place, part in enumerate(value):
            numbers(part, f"{name}/{place}")
    elif isinstance(value, (int, float)) and not {"time", "ms", "latency"} & set(name.replace("/", "_").split("_")):
        keep(name, float(value))


numbers(json.loads(Path("out.json").read_text()))
