"""Planning for GPUs alone: their passes, and loops and branches that one group runs."""
