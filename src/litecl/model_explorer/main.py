"""litecl's node data for Model Explorer: where a model's nodes run, and how long they take."""

from typing import Any

from model_explorer.node_data_builder import GradientItem, GraphNodeData, NodeDataResult
from model_explorer.node_data_provider import (
    GetConfigEditorsResult,
    NodeDataProvider,
    NodeDataProviderFilter,
    NodeDataProviderMetadata,
    NodeDataProviderResult,
)

from litecl.delegate import CLDelegate, DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.perf.feeds import prepare, random_inputs
from litecl.perf.node_data import KINDS

_FILES = NodeDataProviderFilter(modelFileExts=["tflite"])


class LiteclNodeData(NodeDataProvider):  # type: ignore[misc]
    """Runs a model once with random inputs on the device that litecl chooses."""

    metadata = [  # noqa: RUF012  # Model Explorer expects a list
        NodeDataProviderMetadata("litecl_places", "litecl: where", "Which nodes the device runs", filter=_FILES),
        NodeDataProviderMetadata("litecl_times", "litecl: ms", "How long each node takes on the device", filter=_FILES),
    ]

    def get_config_editors(self, provider_id: str) -> Any:
        """Return no settings."""
        return GetConfigEditorsResult(configEditors=[])

    def run(
        self, provider_id: str, model_path: str, graph_id: str, config_values: dict[str, Any], graph: Any = None
    ) -> Any:
        """Return the node data of one graph, or the error as text."""
        kind = provider_id.removeprefix("litecl_")
        try:
            interpreter = Interpreter(model_path, delegates=[CLDelegate(profile=kind == "times")])
            prepare(interpreter, random_inputs(interpreter.get_input_details(), 0))
            interpreter.invoke()
            graphs = KINDS[kind](interpreter.model, DelegationReport.of(interpreter))
        except LiteclError as error:
            return NodeDataProviderResult(error=f"{type(error).__name__}: {error}")
        return NodeDataProviderResult(result=_typed(graphs.get(graph_id, {"results": {}})))


def _typed(data: dict[str, Any]) -> Any:
    results = {node: NodeDataResult(**value) for node, value in data["results"].items()}
    gradient = [GradientItem(**item) for item in data.get("gradient", [])]
    return GraphNodeData(results, name=data.get("name"), gradient=gradient)
