import onnx
import onnx2tf
from helper import RNG, keep
from onnx import TensorProto, numpy_helper
from onnx import helper as make
from onnx2tf.tflite_builder.accuracy_evaluator import evaluate_onnx_tflite_outputs

float_info = lambda name, shape: make.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
weights = [("w", (4, 3, 3, 3)), ("b", (4,)), ("m", (64, 10))]
graph = make.make_graph(
    [
        make.make_node("Conv", ["x", "w", "b"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        make.make_node("Relu", ["c"], ["r"]),
        make.make_node("Flatten", ["r"], ["f"]),
        make.make_node("MatMul", ["f", "m"], ["d"]),
        make.make_node("Softmax", ["d"], ["y"]),
    ],
    "net",
    [float_info("x", [1, 3, 8, 8])],
    [float_info("y", [1, 10])],
    [numpy_helper.from_array(RNG.standard_normal(shape).astype("float32"), name) for name, shape in weights],
)
onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8), "net.onnx")
onnx2tf.convert(input_onnx_file_path="net.onnx", output_folder_path="out")
report = evaluate_onnx_tflite_outputs(
    onnx_graph=onnx.load("net.onnx"), tflite_path="out/net_float32.tflite", output_report_path="report.json"
)
keep("compared", report["compared_output_names"])
keep("pass", report["evaluation_pass"])
keep("similarity", report["overall_metrics"]["cosine_similarity"])
