"""A NumPy array is copied to the GPU and overwritten right after. The copy from pageable memory has left the array before to() returns."""
import numpy
import torch

a = numpy.ones((512, 512), dtype=numpy.float32)
t = torch.from_numpy(a).to("cuda")
a[:] = 7.0
print(t.sum().item())
