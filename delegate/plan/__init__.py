"""A region as steps over operands with its memory placed. Pure functions of data: nothing here imports pyopencl."""
