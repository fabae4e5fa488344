"""The op check of the LiteRT samples: the operators of a model, by name and types."""

from ai_edge_litert.interpreter import Interpreter, OpResolverType

interpreter = Interpreter(
    model_path="classifier.tflite", experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
)
interpreter.allocate_tensors()
names = {details["index"]: details["name"] for details in interpreter.get_tensor_details()}
result = [
    (op["op_name"], [names[i] for i in op["inputs"]], [names[i] for i in op["outputs"]], op["operand_types"])
    for op in interpreter._get_ops_details()
]
