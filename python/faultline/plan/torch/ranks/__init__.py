"""Programs of many ranks, of which one or a few run: torch.distributed, its launchers and its collectives."""
