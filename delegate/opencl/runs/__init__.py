"""Ways to run a plan: as one kernel, queued launch by launch, and, in ``recordings``, as a driver recorded it."""
