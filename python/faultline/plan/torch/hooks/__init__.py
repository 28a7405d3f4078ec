"""Python functions of PyTorch that others stand in for, so that they work on tensors without values. torch_hooks.py, one folder up, puts most in their place."""
