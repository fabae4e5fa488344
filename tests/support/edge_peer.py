"""A process of its own in which a device runs the edges of options."""

from multiprocessing.connection import Connection

from support import pocl_processor
from tools.edge_peers import serve_device


def serve(pipe: Connection, device: object) -> None:
    """Run cases as ``serve_device`` does, where PoCL is told of the processor too."""
    pocl_processor.watch()
    serve_device(pipe, device)
