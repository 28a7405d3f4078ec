"""A CuPy kernel averages each row of an image with its neighbours; no row is above the first one, and its unsigned number becomes huge."""
import cupy

KERNEL = cupy.RawKernel(r"""
extern "C" __global__ void blur_rows(const float* image, float* out, unsigned int rows, unsigned int columns) {
  const unsigned int column = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned int row = blockIdx.y;
  if (column >= columns || row >= rows) return;
  float sum = 0;
  for (unsigned int near = row - 1; near != row + 2; ++near) {
    sum += image[(size_t)near * columns + column];
  }
  out[(size_t)row * columns + column] = sum / 3;
}
""", "blur_rows", options=("-lineinfo",))


def blur(image):
    out = cupy.empty_like(image)
    rows, columns = image.shape
    KERNEL(((columns + 127) // 128, rows), (128,), (image, out, cupy.uint32(rows), cupy.uint32(columns)))
    return out


image = cupy.random.rand(1080, 1920, dtype=cupy.float32)
blurred = blur(image)
print("mean", float(blurred.mean()))
