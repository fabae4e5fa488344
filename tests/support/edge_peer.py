"""A process of its own in which a device runs the edges of options."""

from multiprocessing.connection import Connection

from litecl.perf.compare.edge_peers import serve_device
from support import pocl_processor


def serve(pipe: Connection, device: object) -> None:
    """Run cases as ``serve_device`` does, where PoCL is told of the processor too."""
    pocl_processor.watch()
    serve_device(pipe, device)
