"""What a release of PyTorch does, and what it calls things."""
