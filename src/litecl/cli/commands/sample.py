"""``litecl sample``: writes a model to try the other commands with."""

import argparse

from rich.text import Text

from litecl import sample
from litecl.cli.command import Output, folder
from litecl.cli.tables import size, table

HELP = "write a small trained model, inputs and a language model to try litecl with"
EXAMPLES = """\
litecl sample demo
litecl run demo/model.tflite --input image=demo/image.npy
litecl convert demo/model.tflite -o demo/int8.tflite --quantize int8 --calibrate demo/images.npz
litecl generate demo/language_model.litertlm --prompt "the cat sat" --temperature 1 --seed 1
litecl sample demo --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("folder", type=folder, metavar="DIR", help="the folder; made if it is missing")


def run(args: argparse.Namespace) -> Output:
    """Train the sample and write its files."""
    example = sample.write(args.folder)
    files = {
        example.model: "a classifier of digits: image float32 [-1,8,8,3] of 0 to 1, to probabilities [-1,10]",
        example.image: f"an image of a {example.shown}",
        example.images: "200 images that the model was not trained on, as --input takes them, and --calibrate",
        example.digits: "their digits, a line each",
        example.language_model: "a language model with random weights, which writes words: litecl generate",
        example.tokenizer: "its tokenizer",
        example.config: "its chat template and end-of-text token",
        example.bundle: "all of it as a bundle",
    }
    view = table("file", "size", "contents")
    for path, contents in files.items():
        view.add_row(str(path), size(path.stat().st_size), contents)
    note = Text("Made by litecl from its own drawings, under litecl's licence (Apache-2.0).")
    data = {"files": [{"path": str(path), "contents": contents} for path, contents in files.items()]}
    return Output(data | {"shown": example.shown}, [view, note])
