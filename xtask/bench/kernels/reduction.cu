// Sums by CTA: a stride over the grid, then a tree in shared memory.
#include "prelude.cuh"

KERNEL reduction(const float *in, float *sums, int n) {
  __shared__ float part[256];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
    sum += in[i];
  part[t] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half >>= 1) {
    if (t < half)
      part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0)
    sums[blockIdx.x] = part[0];
}
