"""``litecl where`` on public models: every statement about a node is true of the runtime itself."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from litecl.conformance.runtimes import suspect
from litecl.interpreter.errors import MissingExtra
from litecl.interpreter.file.reader import read
from litecl.where import specimens, table
from litecl.where.making import observed
from litecl.where.measure import Measured, measure
from litecl.where.places import Place, where
from litecl.where.seen import Seen
from litecl.where.table import LEFT, PLACED, REFUSES, SAME, UNKNOWN, Verdict
from support.shared import model_file

MODELS = (
    "MycroftAI-plugin-wake-word-precise-lite/hey_mycroft.tflite",
    "anilsathyan7-Portrait-Segmentation/mnv3_post_quant.tflite",
    "breizhn-DTLN/model_1.tflite",
    "esphome-micro-wake-word-models/okay_nabu.tflite",
    "google-ai-edge-ai-edge-quantizer/mnist_quantized.tflite",
    "google-ai-edge-ai-edge-quantizer/partly_quantized_mnist.tflite",
    "google-coral-test_data/mobilenet_v1_0.25_128_quant.tflite",
    "google-coral-test_data/movenet_single_pose_lightning_ptq.tflite",
    "google-coral-test_data/tf2_mobilenet_v2_1.0_224_ptq.tflite",
    "hugocornellier-face_detection_tflite/face_detection_front.tflite",
    "hugocornellier-face_detection_tflite/face_landmark.tflite",
    "mit-han-lab-tinyengine/vww.tflite",
    "mlcommons-tiny/ad01_int8.tflite",
    "mlcommons-tiny/kws_ref_model.tflite",
    "mlcommons-tiny/kws_ref_model_float32.tflite",
    "mlcommons-tiny/pretrainedResnet.tflite",
    "mlcommons-tiny/vww_96_int8.tflite",
    "sipeed-TinyMaix/mnist_resnet_f.tflite",
    "tensorflow-tflite-micro/keyword_scrambled.tflite",
    "tensorflow-tflite-support/yamnet_audio_classifier_with_metadata.tflite",
)


def test_the_table_has_no_nodes_of_these_models() -> None:
    known = table.shipped()
    assert all(known.models(name) for name in known.runtimes)
    assert not {*MODELS} & {model for name in known.runtimes for model in known.models(name)}


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("runtime", table.shipped().runtimes)
def test_every_statement_is_true(runtime: str, name: str, tmp_path: Path) -> None:
    try:
        version = suspect(runtime).version
    except MissingExtra as error:
        pytest.skip(str(error))
    if version != table.shipped().runtimes[runtime].version:
        pytest.skip(f"the table is of {runtime} {table.shipped().runtimes[runtime].version}, not {version}")
    false, counts = check(model_file(name), runtime, table.shipped(), tmp_path)
    print(runtime, name, counts)
    assert not false


def check(path: Path, runtime: str, known: table.Table, folder: Path) -> tuple[list[str], dict[str, int]]:
    """Return the false statements, and how many statements of each kind there are."""
    content = path.read_bytes()
    places = {place.label: place for place in where(read(content), known, [runtime])}
    cut = [*specimens.of_model(content, path.name)]
    seen = observed(runtime, specimens.save(cut, folder), 120, lambda: None)
    counts = dict.fromkeys((*table.STATUSES, "not tried"), 0)
    tried = {one.name.rpartition("#")[2] for one, _ in seen}
    said = {label for label, place in places.items() if place.verdicts[runtime].status != UNKNOWN}
    counts["not tried"] = len(said - tried)
    whole = measure(content, runtime, 0, 300)
    false = [*_against_whole(path.name, runtime, places, whole)]
    for one, died in seen:
        place = places[one.name.rpartition("#")[2]]
        verdict = place.verdicts[runtime]
        counts[verdict.status] += 1
        false += [f"{one.name}: {place.kind}: {verdict}, {text}" for text in _against(verdict, one, died)]
    return false, counts


def _against_whole(name: str, runtime: str, places: Mapping[str, Place], whole: Measured) -> Iterator[str]:
    """Yield how a run, or the compilation, of the whole model contradicts the places of its nodes."""
    refuses = [place.kind for place in places.values() if place.verdicts[runtime].status == REFUSES]
    if refuses and whole.refused is None:
        yield f"{name} runs, with {refuses}"
    statuses = {place.verdicts[runtime].status for place in places.values()}
    if not statuses & {REFUSES, UNKNOWN, LEFT} and whole.refused is not None:
        yield f"{name}: every node runs, but: {whole}"
    if LEFT in statuses and not whole.refused and "on the CPU" not in whole.placed:
        yield f"{name}: some nodes are left to the CPU, but: {whole}"
    if statuses == {PLACED} and "on the CPU" in whole.placed:
        yield f"{name}: all nodes are placed, but: {whole}"


def _against(verdict: Verdict, seen: Seen, died: bool) -> Iterator[str]:
    """Yield how an observation contradicts a verdict."""
    stopped = died or (seen.refused is not None and seen.npu is None)
    if verdict.status == UNKNOWN:
        return
    if verdict.status in (PLACED, LEFT):
        if seen.npu is not (verdict.status == PLACED):
            yield f"but npu is {seen.npu}: {seen.refused}"
        return
    if verdict.status == REFUSES:
        if not stopped:
            yield "but it ran"
    elif stopped:
        yield f"but it was refused: {seen.refused}"
    elif verdict.status == SAME and seen.differing:
        yield f"but {seen.differing} of {seen.numbers} differ"
    elif seen.steps > verdict.steps or seen.relative > verdict.relative or (seen.wrong and verdict.steps < 1e9):
        yield f"but it is off by {seen.steps:g} steps, {seen.relative:.1e} {seen.wrong}"
