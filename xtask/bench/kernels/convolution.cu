// A picture convolved with 5 x 5 weights, clamped at its edges, from a tile in shared memory.
#include "prelude.cuh"

__constant__ float weights[25] = {1, 4, 6, 4, 1, 4, 16, 24, 16, 4, 6, 24, 36, 24, 6, 4, 16, 24, 16, 4, 1, 4, 6, 4, 1};

KERNEL convolution(const float *in, float *out, int width, int height) {
  __shared__ float tile[20][36];
  int x0 = blockIdx.x * 32, y0 = blockIdx.y * 16;
  for (int ty = threadIdx.y; ty < 20; ty += 8)
    for (int tx = threadIdx.x; tx < 36; tx += 32) {
      int x = min(max(x0 + tx - 2, 0), width - 1), y = min(max(y0 + ty - 2, 0), height - 1);
      tile[ty][tx] = in[y * width + x];
    }
  __syncthreads();
  for (int ty = threadIdx.y; ty < 16; ty += 8) {
    float sum = 0.0f;
    for (int dy = 0; dy < 5; dy++)
      for (int dx = 0; dx < 5; dx++)
        sum += weights[dy * 5 + dx] * tile[ty + dy][threadIdx.x + dx];
    int x = x0 + threadIdx.x, y = y0 + ty;
    if (x < width && y < height)
      out[y * width + x] = sum * (1.0f / 256.0f);
  }
}
