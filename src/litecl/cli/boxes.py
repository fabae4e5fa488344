"""Object detectors' boxes, and drawing them on the image."""

from collections.abc import Sequence
from pathlib import Path

from litecl.cli.classes import Labels
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.whole_files import whole_file
from litecl.jobs.given import pixels_of

_DETECTOR = "TFLite_Detection_PostProcess"
_BACKGROUND = ("???", "background")  # names of a leading background class, which detected classes skip
_COLOURS = ("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080", "#9a6324", "#808000")


@dataclass(frozen=True)
class Detection:
    """A detected object. box: left, top, right and bottom as fractions of the image."""

    label: str
    index: int
    score: float
    box: tuple[float, float, float, float]


def detections(interpreter: Interpreter, labels: Labels | None, least: float) -> list[Detection] | None:
    """Return a detector's boxes with at least the score ``least``, best first; None for other models."""
    outputs = next((op["outputs"] for op in interpreter._get_ops_details() if op["op_name"] == _DETECTOR), None)
    if outputs is None or not {*map(int, outputs)} <= {detail["index"] for detail in interpreter.get_output_details()}:
        return None
    boxes, classes, scores, count = (interpreter.get_tensor(int(index)) for index in outputs)
    likely = []
    for row in range(int(count.reshape(-1)[0])):
        index, score = int(classes.reshape(-1)[row]), float(scores.reshape(-1)[row])
        top_, left, bottom, right = (float(edge) for edge in boxes.reshape(-1, 4)[row])
        if score >= least:
            likely.append(Detection(_object(labels, index), index, score, (left, top_, right, bottom)))
    return sorted(likely, key=lambda each: -each.score)


def _object(labels: Labels | None, index: int) -> str:
    """Return a detected class's name. Classes are numbered from the first after the background."""
    if labels is None:
        return str(index)
    return labels.name(index + (labels.name(0) in _BACKGROUND))


def draw(image: Path, boxes: Sequence[Detection], output: Path) -> None:
    """Write an image with boxes and names. Raises ModelError without Pillow, or for a file that isn't an image."""
    try:
        from PIL import Image, ImageDraw
    except ModuleNotFoundError as error:
        raise ModelError("--draw needs Pillow: pip install 'litecl[images]'") from error
    picture = Image.fromarray(pixels_of(image, "RGB", None))
    pen, (width, height) = ImageDraw.Draw(picture), picture.size
    line = max(2, width // 200)
    for each in reversed(boxes):
        left, top_, right, bottom = (share * size for share, size in zip(each.box, (width, height) * 2, strict=True))
        (left, right), (top_, bottom) = sorted((left, right)), sorted((top_, bottom))
        colour, text = _COLOURS[each.index % len(_COLOURS)], f"{each.label} {each.score:.2f}"
        pen.rectangle((left, top_, right, bottom), outline=colour, width=line)
        at = left + line, max(0.0, top_ - 14)
        pen.rectangle(pen.textbbox(at, text), fill=colour)
        pen.text(at, text, fill="white")
    try:
        kind = Image.registered_extensions()[output.suffix.lower()]
        with whole_file(output) as file:
            picture.save(file, kind)
    except (ValueError, KeyError) as error:
        raise ModelError(f"--draw {output}: expected a name that ends in .png or .jpg") from error
