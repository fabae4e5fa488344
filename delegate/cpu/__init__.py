"""CPUs: how lowerings distribute work among cores and registers, and code that pays only there."""
