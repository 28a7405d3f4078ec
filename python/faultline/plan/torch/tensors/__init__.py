"""Tensors, storages and their memory on the planned GPU, and what the trace calls them."""
