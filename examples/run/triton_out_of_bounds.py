"""A Triton kernel is given a row's stride in bytes where it counts elements: every row from the second on is read four times too far."""
import torch
import triton
import triton.language as tl


@triton.jit
def scale_rows(x, scale, y, x_row_stride, y_row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(x + row * x_row_stride + offsets, mask=inside)
    tl.store(y + row * y_row_stride + offsets, values * tl.load(scale + row), mask=inside)


def scale_all(x, scale):
    y = torch.empty_like(x)
    x_row_stride = x.stride(0) * x.element_size()
    scale_rows[(x.shape[0],)](x, scale, y, x_row_stride, y.stride(0), x.shape[1], BLOCK=4096)
    return y


activations = torch.randn(65536, 4096, device="cuda")
scale = torch.rand(65536, device="cuda")
scaled = scale_all(activations, scale)
mean = scaled.mean()
print("mean", mean.item())
