"""What an operation is given and gives, and the shapes that PyTorch does not tell."""
