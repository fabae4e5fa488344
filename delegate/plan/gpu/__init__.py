"""Parts of plans for GPUs alone: loops that one group runs, and estimates of launches from a GPU's peaks."""
