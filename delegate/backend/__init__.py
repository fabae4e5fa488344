"""What a back end is, as protocols, and what runs a plan by them: nothing here knows of OpenCL."""
