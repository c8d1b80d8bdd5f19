// y = A x, a row by each warp.
#include "prelude.cuh"

KERNEL matvec(const float *a, const float *x, float *y, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  float sum = 0.0f;
  for (int i = lane; i < columns; i += 32)
    sum += a[row * columns + i] * x[i];
  for (int d = 16; d > 0; d >>= 1)
    sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (lane == 0)
    y[row] = sum;
}
