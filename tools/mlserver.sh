#!/usr/bin/env bash
# Serves a model with MLServer by the runtime of examples/mlserver, and asks it with Triton's clients, by REST and gRPC.
# Installs MLServer into a folder of its own. Takes a minute or two.
# Usage: tools/mlserver.sh
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD work=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server"; rm -rf "$work"' EXIT
.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet . mlserver 'tritonclient[all]' 'uvloop<0.22'
mkdir "$work/models"
cp examples/mlserver/* "$work/models"
PYTHONPATH=$here/tests "$work/venv/bin/python" - "$work/models" << 'EOF'
import json, sys
from pathlib import Path
from litecl.interpreter.file.writer import write
from support.pattern_models import classifier
folder = Path(sys.argv[1])
(folder / "model.tflite").write_bytes(write(classifier()))
settings = json.loads((folder / "model-settings.json").read_text())
settings["parameters"]["uri"] = str(folder / "model.tflite")
(folder / "model-settings.json").write_text(json.dumps(settings))
(folder / "settings.json").write_text(json.dumps({"http_port": 18080, "grpc_port": 18081, "metrics_port": 18082}))
EOF
(cd "$work/models" && exec "$work/venv/bin/mlserver" start . > "$work/log" 2>&1) &
server=$!
"$work/venv/bin/python" - "$work/models" << 'EOF' || { cat "$work/log" >&2; exit 1; }
import json, sys, time
from pathlib import Path
import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from litecl import Predictor
folder = Path(sys.argv[1])
name = json.loads((folder / "model-settings.json").read_text())["name"]
model = Predictor(folder / "model.tflite", cpu=True)
((given, (shape, _)),), (output,) = model.inputs.items(), model.outputs
image = np.random.default_rng(0).random((5, *shape[1:]), dtype=np.float32)
wanted = model({given: image})[output]
ports = {http: 18080, grpc: 18081}
for kind, port in ports.items():
    client = kind.InferenceServerClient(f"127.0.0.1:{port}")
    for _ in range(240):
        try:
            if client.is_model_ready(name):
                break
        except Exception:
            pass
        time.sleep(0.5)
    value = kind.InferInput(given, image.shape, "FP32")
    value.set_data_from_numpy(image, **({"binary_data": False} if kind is http else {}))
    asked = {"outputs": [http.InferRequestedOutput(output, binary_data=False)]} if kind is http else {}
    got = client.infer(name, [value], **asked).as_numpy(output)
    print(kind.__name__, "differs by", float(np.abs(got - wanted).max()))
    assert np.abs(got - wanted).max() < 1e-5
    wrong = kind.InferInput("nothing", image.shape, "FP32")
    wrong.set_data_from_numpy(image, **({"binary_data": False} if kind is http else {}))
    try:
        client.infer(name, [wrong])
        sys.exit("a wrong input was taken")
    except Exception as error:
        print("a wrong input:", str(error).splitlines()[0][:120])
EOF
echo "served by MLServer, by REST and gRPC"
