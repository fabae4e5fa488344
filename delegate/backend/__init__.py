"""The protocols of a back end, and what runs a plan by them: nothing here knows of OpenCL."""
