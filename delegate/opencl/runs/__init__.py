"""Ways to run a plan: as one kernel, or queued launch by launch."""
