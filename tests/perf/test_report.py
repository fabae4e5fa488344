"""litecl report: figures on the page are those of its data, and those of the model."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from litecl.cli import main
from litecl.cli.tables import to_json
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.perf import peak
from litecl.perf.feeds import random_inputs
from litecl.report.collect import Wanted, collect, earlier
from litecl.report.collect.start import starts
from litecl.report.draw import arena, graph, latency, layers, parts, roofline, timeline, units
from litecl.report.draw.layout import layout
from litecl.report.facts import Latency
from litecl.report.page import page
from litecl.verify.scenarios.images import image, sound

_VOID = {"meta", "link", "br", "wbr", "input"}
_FACTORS = {
    "µs": 1e-3,
    "ms": 1.0,
    "s": 1e3,
    "%": 1e-2,
    "B": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "": 1.0,
    **{
        f"{prefix}{unit}": 1e3**i for unit in ("op", "op/s", "B/s") for i, prefix in enumerate(("", "k", "M", "G", "T"))
    },
}


class Reader(HTMLParser):
    """Reads numbers with their names, and checks that elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.figures: list[tuple[str, str, str]] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self._attributes: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes = dict(attrs)
        self.ids |= {self._attributes["id"] or ""} if "id" in self._attributes else set()
        self.links |= {(self._attributes.get("href") or "")} if tag == "a" else set()
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "data":
            told = self._attributes
            self.figures.append((told["data-path"] or "", told["value"] or "", data))


def read_page(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    assert not reader.open
    return reader


def at(data: Any, path: str) -> Any:
    for key in path.split("."):
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "sound.tflite"
    path.write_bytes(write(sound()))
    return path


@pytest.fixture(autouse=True, scope="module")
def _quick_roofs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peak, "_RUNS", 1)
        patch.setattr(peak, "READ_BYTES", (1 << 16, 1 << 20))
        yield


@pytest.fixture(scope="module")
def data(model: Path) -> dict[str, Any]:
    """A report in which the CPU runs a node, and on which nothing is left out but starts."""
    wanted = Wanted({"deny_ops": ["SOFTMAX"]}, (0, 1), "litert-reference", runs=15, layers=True, cold=False)
    inputs = random_inputs(Interpreter(model.read_bytes()).get_input_details(), 0)
    made: dict[str, Any] = json.loads(to_json(asdict(collect(model, inputs, wanted))))
    return made


def test_figures_on_the_page_are_those_of_the_data(data: dict[str, Any]) -> None:
    html = page(data)
    reader = read_page(html)
    assert len(reader.figures) > 100
    for path, value, shown in reader.figures:
        assert float(value) == at(data, path), path
        number, _, unit = shown.replace(",", "").partition(" ")
        factor = _FACTORS[unit] * (1e-3 if path.endswith(("seconds", "total_s")) else 1)
        assert math.isclose(float(number) * factor, float(value), rel_tol=0.06, abs_tol=1e-12), (path, value, shown)
    paths = {path for path, _, _ in reader.figures}
    for i, run in enumerate(data["runs"]):
        assert {f"runs.{i}.operators.{k}.work.ms" for k in range(len(run["operators"]))} <= paths
        assert f"runs.{i}.latency.median_ms" in paths


def test_the_page_needs_nothing_else(data: dict[str, Any]) -> None:
    html = page(data)
    reader = read_page(html)
    assert not re.search(r"(src|href)=\"(?!#|data:)|url\(|@import|fetch\(|XMLHttpRequest", html)
    assert {link.removeprefix("#") for link in reader.links} <= reader.ids
    for place in ("device", "cpu"):
        assert f'class="node {place}' in html
    launched = [line for node in data["runs"][0]["nodes"] for line in node["launched"]]
    assert any(line.startswith("conv_") and "MR=" in line for line in launched)  # its tile
    assert all(escape(line, quote=False) in html for line in launched)


def test_what_has_changed_since_is_told(data: dict[str, Any]) -> None:
    """The same times ten per cent longer, on another machine, and an operator that was not there before."""
    old = json.loads(json.dumps(data))
    for run in old["runs"]:
        run["latency"]["times_ms"] = [1.0 + i / 1000 for i in range(15)]
        run["operators"] = [row for row in run["operators"] if row["op"] != "SOFTMAX"]
    old["header"]["machine"]["cores"] = 99
    times = tuple(1.1 * ms for ms in old["runs"][0]["latency"]["times_ms"])
    latency = Latency("", None, 0.0, 0.0, times, 0.0, 0.0, 0.0, {}, 0)
    runs = [SimpleNamespace(latency=replace(latency, name=old["runs"][0]["latency"]["name"]), operators=())]
    found = earlier.earlier_of("old.json", old, data["header"], SimpleNamespace(sha256=data["model"]["sha256"]), runs)
    (change,) = found.times
    assert change.verdict == "slower" and change.new_ms == pytest.approx(1.1 * change.old_ms)
    cores = data["header"]["machine"]["cores"]
    assert found.differences == (f"cores: 99 then, {cores} now",)
    assert all(row.new_ms == 0.0 and row.old_ms > 0 for row in found.operators)


def test_parts_add_up(data: dict[str, Any]) -> None:
    for run in data["runs"]:
        profile = run["profile"]
        launches = sum(row["work"]["ms"] for row in run["launches"])
        assert math.isclose(launches, profile["device_ms"], rel_tol=1e-9)
        whole_ms = launches + profile["cpu_ms"] + profile["rest_ms"]
        shares = sum(row["work"]["share"] for row in run["operators"]) + profile["rest_ms"] / whole_ms
        assert math.isclose(shares, 1.0, rel_tol=1e-9)
        assert math.isclose(sum(row["ms"] for row in run["nodes"]), launches + profile["cpu_ms"], rel_tol=1e-9)
        (refused,) = run["refused"]
        assert (refused["ops"], refused["reason"]) == ({"SOFTMAX": 1}, "denied by deny_ops")
        assert "deny_ops" in refused["lift"] and 0 < refused["share"] < 1
        assert math.isclose(refused["ms"], profile["cpu_ms"])
        count = len(run["nodes"])
        assert run["verdict"][0].startswith(f"{count - 1} of {count} nodes run on the device. The other one (SOFTMAX)")
        median = float(np.median(run["latency"]["times_ms"]))
        assert math.isclose(median, run["latency"]["median_ms"])
    assert [peer["threads"] for peer in data["peers"]] == sorted({1, data["header"]["machine"]["cores"]})


def test_tensors_and_memory_are_those_of_the_model(data: dict[str, Any], model: Path) -> None:
    run = data["runs"][0]
    interpreter = Interpreter(model.read_bytes())
    interpreter.allocate_tensors()
    shapes = {d["index"]: list(d["shape"]) for d in interpreter.get_tensor_details()}
    for node in run["nodes"]:
        for tensor in node["outputs"]:
            assert tensor["shape"] == shapes[tensor["tensor"]]
    for region in run["regions"]:
        assert region["needed_bytes"] <= region["arena_bytes"]
        blocks = region["blocks"]
        for i, a in enumerate(blocks):
            for b in blocks[:i]:
                together = a["first"] <= b["last"] and b["first"] <= a["last"]
                apart = a["offset"] + a["size_bytes"] <= b["offset"] or b["offset"] + b["size_bytes"] <= a["offset"]
                assert apart or not together
    merged = {tuple(place) for row in run["merged"] for place in row["nodes"][1:]}
    assert {tuple(node["place"]) for node in run["nodes"] if node["into"]} == merged


def test_layers_and_outputs_are_compared(data: dict[str, Any]) -> None:
    for run in data["runs"]:
        reference, peer = run["accuracy"]
        assert (reference["reference"], peer["reference"]) == ("litecl's reference", "litert-reference")
        assert [row["place"][1] for row in reference["layers"]] == list(range(len(run["nodes"])))
        assert reference["departed"] is None
        assert all(
            0 <= row["relative"] < 1e-4 for row in (*reference["outputs"], *peer["outputs"], *reference["layers"])
        )


def test_the_command_writes_page_and_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, html, figures = (tmp_path / name for name in ("image.tflite", "report.html", "report.json"))
    model.write_bytes(write(image()))
    files = ["-o", str(html), "-o", str(figures)]
    assert main(["report", str(model), *files, "--no-start", "--runs", "5"]) == 0
    told = capsys.readouterr().out
    data = json.loads(figures.read_text())
    assert (data["header"]["kind"], data["header"]["schema"]) == ("litecl report", 1)
    assert html.read_text() == page(data)
    assert data["runs"][0]["verdict"][0] in told
    again, since = tmp_path / "again.html", tmp_path / "again.json"
    files = ["-o", str(again), "-o", str(since), "--before", str(figures)]
    assert main(["report", str(model), *files, "--no-start", "--runs", "5"]) == 0
    told = json.loads(since.read_text())["earlier"]
    assert (told["file"], told["differences"]) == ("report.json", [])
    latency = data["runs"][0]["latency"]
    assert (told["times"][0]["name"], told["times"][0]["old_ms"]) == (latency["name"], latency["median_ms"])
    assert {row["name"] for row in told["operators"]} == {
        f"{row['op']} ({row['where']})" for row in data["runs"][0]["operators"]
    }
    paths = {path for path, _, _ in read_page(again.read_text()).figures}
    assert {"earlier.times.0.new_ms", "earlier.operators.0.old_ms", "load_after"} <= paths
    assert main(["report", str(model), "-o", str(html), "--before", str(model)]) == 1
    said = capsys.readouterr().err
    assert "expected results of litecl report as JSON" in said
    assert len(said) < 600
    with pytest.raises(SystemExit):
        main(["report", str(model), "-o", "report.pdf"])
    assert "ends in .html or .json" in capsys.readouterr().err


def test_a_start_has_its_phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write(sound())
    inputs = random_inputs(Interpreter(content).get_input_details(), 0)
    empty, filled = starts(content, inputs, {"allow_ops": ["SOFTMAX"]})
    for start in (empty, filled):
        assert math.isclose(sum(phase.seconds for phase in start.phases), start.total_s, rel_tol=1e-6)
    assert {"compile", "first run"} <= {phase.name for phase in empty.phases}
    assert "compile" not in {phase.name for phase in filled.phases}


def test_a_graph_of_800_nodes_has_a_place_for_each() -> None:
    rng = np.random.default_rng(0)
    edges = [(int(rng.integers(max(0, i - 6), i)), i) for i in range(1, 800) for _ in range(2)]
    places = layout(800, list(dict.fromkeys(edges)))
    assert len({*places.corners.values()}) == 800
    assert max(places.width, places.height) < 6000
    above = [places.corners[a][1] < places.corners[b][1] for a, b in edges if places.columns[a] == places.columns[b]]
    assert all(above)
    assert all(places.columns[a] <= places.columns[b] for a, b in edges)


def test_pictures_of_next_to_nothing() -> None:
    still = {"times_ms": [1.0, 1.0], "median_ms": 1.0, "percentiles_ms": {str(p): 1.0 for p in (5, 25, 75, 95)}}
    named = still | {"name": "litecl", "threads": None}
    work = {"flops": 0, "flops_per_s": None, "share": 0.0}
    drawn = [
        latency.histogram(still),
        latency.series(still),
        latency.contenders([named]),
        parts.stacked([], 0.0, "nothing"),
        graph.graph([], 0.0),
    ]
    assert all(picture.startswith("<svg") and "nan" not in picture for picture in drawn)
    assert not roofline.roofline([{"work": work}], {}, {})
    assert not timeline.timeline([], {}) and not layers.layers([], 1e-4)
    assert not arena.arena({"blocks": [], "arena_bytes": 0, "steps": 1})


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0 ms"), (0.0123, "12.3 µs"), (1.5, "1.50 ms"), (999.9, "1,000 ms"), (61000.0, "61.0 s")]
)
def test_times_have_three_digits(value: float, shown: str) -> None:
    assert units.ms(value) == shown
