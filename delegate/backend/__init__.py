"""The protocols of a back end, and the code that runs plans through them, without OpenCL."""
