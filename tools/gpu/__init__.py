"""The parts of ``tools.gpu_page``: models, the peers PyTorch and ONNX Runtime, and the page of figures."""
