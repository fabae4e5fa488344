"""Model Explorer: node data as a file, and litecl's extension, as its own code reads them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from support.command import data
from support.compiled import accumulator
from support.pattern_models import classifier

pytest.importorskip("model_explorer")


def graphs(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The graphs that Model Explorer makes of a file: their nodes by the graph's name."""
    from model_explorer.builtin_tflite_flatbuffer_adapter import BuiltinTfliteFlatbufferAdapter

    made = BuiltinTfliteFlatbufferAdapter().convert(str(path), {})["graphCollections"]
    (collection,) = json.loads(json.dumps(made, default=vars))
    return {graph["id"]: graph["nodes"] for graph in collection["graphs"]}


def of_operators(nodes: list[dict[str, Any]]) -> set[str]:
    made = ("GraphInputs", "GraphOutputs", "pseudo_const")
    return {node["id"] for node in nodes if node["label"] not in made}


def unnamed() -> Model:
    """Graphs without names, one of which has a signature."""
    made = classifier()
    (graph,) = (replace(graph, name="") for graph in made.subgraphs)
    return replace(made, subgraphs=(graph, graph))


def unsigned() -> Model:
    return replace(unnamed(), signatures=())


@pytest.mark.parametrize("made", [classifier, accumulator, unnamed, unsigned])
def test_a_file_of_node_data(made: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every node of every graph that Model Explorer shows has its value, under its own identifier."""
    from model_explorer.node_data_builder import GraphNodeData, ModelNodeData, NodeDataResult

    model, file = tmp_path / "model.tflite", tmp_path / "nodes.json"
    model.write_bytes(write(made()))
    data(capsys, "inspect", model, "--node-data", file, "--device", 0)
    found = json.loads(file.read_text())
    assert {name: of_operators(nodes) for name, nodes in graphs(model).items()} == {
        name: {*graph["results"]} for name, graph in found.items()
    }
    typed = {
        name: GraphNodeData({node: NodeDataResult(**value) for node, value in graph["results"].items()}, graph["name"])
        for name, graph in found.items()
    }
    assert json.loads(ModelNodeData(typed).to_json_string()).keys() == found.keys()
    values = [value for graph in found.values() for value in graph["results"].values()]
    assert {"region 0"} <= {value["value"] for value in values}


def test_the_extension(tmp_path: Path) -> None:
    """Model Explorer finds it by its name, and gets node data for the graph that it shows."""
    from model_explorer.extension_manager import ExtensionManager

    path = tmp_path / "model.tflite"
    path.write_bytes(write(classifier()))
    manager = ExtensionManager(["litecl.model_explorer"])
    manager.load_extensions()
    assert {"litecl_places", "litecl_times"} <= {each["id"] for each in manager.get_extensions_metadata()}

    def run(extension: str, model: Path, graph: str = "main") -> dict[str, Any]:
        place = {"modelPath": str(model), "graphId": graph, "configValues": {}}
        return dict(manager.run_cmd({"cmdId": "run", "extensionId": extension, **place}))

    places = run("litecl_places", path)
    assert not places["error"]
    assert {value["value"] for value in places["result"]["results"].values()} == {"region 0"}
    times = run("litecl_times", path)["result"]
    assert times["results"]
    assert all(value["value"] >= 0 for value in times["results"].values())
    assert times["results"].keys() <= places["result"]["results"].keys()
    assert run("litecl_places", path, "no such graph")["result"]["results"] == {}
    assert run("litecl_places", tmp_path / "none.tflite")["error"].startswith("ModelFileNotFound: ")
