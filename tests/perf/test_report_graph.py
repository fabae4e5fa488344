"""The graph of a report: what its script is given, and that it runs in a browser."""

import json
import re
import shutil
import subprocess
from dataclasses import asdict
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from litecl import kernels_cl
from litecl.cli.tables import to_json
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.perf import peak
from litecl.perf.feeds import random_inputs
from litecl.report.collect import Wanted, collect
from litecl.report.draw.graph import graph
from litecl.report.page import page
from litecl.verify.scenarios.images import sound

KERNELS = Path(kernels_cl.__file__).parent


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A report on two devices, on which the CPU runs a node."""
    path = tmp_path_factory.mktemp("report") / "sound.tflite"
    path.write_bytes(write(sound()))
    inputs = random_inputs(Interpreter(path).get_input_details(), 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peak, "_RUNS", 1)
        patch.setattr(peak, "READ_BYTES", (1 << 16, 1 << 20))
        found = collect(path, inputs, Wanted({"deny_ops": ["SOFTMAX"]}, (0, 1), runs=5, cold=False))
    made: dict[str, Any] = json.loads(to_json(asdict(found)))
    return made


def test_a_node_leads_to_the_source_of_its_kernel(data: dict[str, Any]) -> None:
    html = page(data)
    (told,) = re.findall(r'<script type="application/json" id="graph-data">(.*?)</script>', html, re.S)
    for run, shown in zip(data["runs"], json.loads(told), strict=True):
        assert shown["median"] == run["latency"]["median_ms"]
        for node, drawn in zip(run["nodes"], shown["nodes"], strict=True):
            assert f'data-place="{drawn["place"]}"' in html
            assert [drawn["op"], drawn["where"], drawn["ms"]] == [node["op"], node["where"], node["ms"]]
    kernels = {name.partition(":")[0] for run in data["runs"] for node in run["nodes"] for name in node["kernels"]}
    assert kernels == {*data["sources"]} and len(kernels) > 2
    for name, source in data["sources"].items():
        assert source == (KERNELS / f"{name}.cl").read_text()
        assert f'id="kernel-{name}"' in html and source in unescape(html)


def test_a_browser_shows_the_tools_of_the_graph(data: dict[str, Any], tmp_path: Path) -> None:
    """Its script runs to its end, and changes nothing else."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium")
    (tmp_path / "page.html").write_text(page(data), encoding="utf-8")
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    address = (tmp_path / "page.html").as_uri()
    shown = subprocess.run(
        [*words, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    assert shown.count('class="tools"') == len(data["runs"]) == shown.count('class="about"')
    assert shown.count(">compare with a report") == len(data["runs"])


def node(position: int, *reads: int, op: str = "ADD", share: float = 0.0, shape: tuple[int, ...] = (1,)) -> Any:
    tensor = {"name": "", "type": "FLOAT32", "shape": shape, "constant": False, "size_bytes": 4}
    kept = {"op": op, "where": "device", "region": 0, "share": share, "ms": 0.0, "reason": "", "into": None}
    given = [tensor | {"tensor": number} for number in reads]
    made = [tensor | {"tensor": position}]
    return kept | {"place": [0, position], "launched": [], "kernels": [], "inputs": given, "outputs": made}


def test_words_in_a_box_stay_apart() -> None:
    """Names of the widest letters, and shapes beside shares; the widths of 11 and 10 px in most fonts."""
    drawn = graph([node(0, op="MAX_POOL_2D_WWWW", share=0.0033, shape=(1, 1024, 1024, 2048))], 1.0)
    words = re.findall(r'<text x="([^"]*)" y="([^"]*)" class="(\w+)"[^>]*>([^<]*)<', drawn)
    (name, shape, share) = ((float(x), float(y), text) for x, y, _, text in words)
    assert (name[2], share[2]) == ("MAX_POOL_2D_WW…", "0.33 %")
    assert name[1] + 10 < shape[1] == share[1]
    assert shape[0] + 6.2 * len(shape[2]) < share[0] - 6 * len(share[2])


def test_edges_stay_within_the_picture() -> None:
    """One past the boxes of the last column bulges to the right of it."""
    drawn = graph([node(0), node(1, 0), node(2, 1, 0)], 1.0)
    left, _, width, _ = map(float, re.search(r'viewBox="([^"]*)"', drawn)[1].split())  # type: ignore[index]
    xs = [float(x) for path in re.findall(r' d="([^"]*)"', drawn) for x in re.findall(r"[\d.]+", path)[::2]]
    boxes = [float(x) + float(w) for x, w in re.findall(r'<rect x="([^"]*)"[^>]* width="([^"]*)"', drawn)]
    assert max(xs) > max(boxes) > 0 and max(xs) < left + width
