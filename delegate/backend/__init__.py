"""The protocols of a back end, and the runner of plans that uses them: nothing here knows of OpenCL."""
