"""What PyTorch's CUDA kernels take from the caching allocator beside their results, one module per family (temporaries.py asks them), and which kernel it is."""
