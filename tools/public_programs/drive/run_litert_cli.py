import numpy as np
from click.testing import CliRunner
from helper import RNG, keep, model
from litert_cli.commands.run.cli import run_cmd

np.save("photo.npy", RNG.random((1, 28, 28, 1), dtype="float32"))
path = model("google-ai-edge-ai-edge-quantizer/conv_fc_mnist.tflite")
result = CliRunner().invoke(run_cmd, [path, "--desktop", "--input", "photo.npy", "--print-tensors"])
print(result.output, result.exception)
keep("exit code", result.exit_code)
numbers = result.output.rpartition("[")[2].rpartition("]")[0].split()
keep("scores", [float(each) for each in numbers])
