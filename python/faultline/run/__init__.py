"""What `faultline run` has in a Python process of the recorded program."""

# Packages that use a GPU, by which a process is known to.
FRAMEWORKS = ("torch", "jax", "tensorflow", "cupy", "numba", "pycuda", "cuda", "warp", "paddle", "mxnet", "tinygrad")
