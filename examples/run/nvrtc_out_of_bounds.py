"""A kernel compiled at run time takes a byte count for an element count, and runs far over the end of its output."""
import torch

SOURCE = r"""
extern "C" __global__ void clamp_to_zero(float* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && values[i] < 0) {
    values[i] = 0;
  }
}
"""

clamp_to_zero = torch.cuda._compile_kernel(SOURCE, "clamp_to_zero")


def relu_(values):
    count = values.numel() * values.element_size()
    clamp_to_zero(grid=((count + 255) // 256, 1, 1), block=(256, 1, 1), args=[values, count])
    return values


hidden = torch.randn(400, 1024, 1024, device="cuda")
relu_(hidden)
print("smallest", hidden.min().item())
