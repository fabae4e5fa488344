"""What only plans for GPUs have: loops that one group runs, and estimates of launches from a GPU's peaks."""
