// Counts how often each remainder of i * i by 8 occurs for i = 0 ... n-1: atomic additions in shared memory, then in global memory.
#include "device.h"

extern "C" __global__ void histogram(int n, int *bins, int *blocks_done) {
  __shared__ int own[8];
  int t = threadIdx.x;
  if (t < 8) own[t] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[i * i % 8], 1);
  __syncthreads();
  if (t < 8) atomicAdd(&bins[t], own[t]);
  __nvvm_membar_gl();
  __syncthreads();
  if (t == 0 && atomicAdd(blocks_done, 1) == gridDim.x - 1)
    for (int bin = 0; bin < 8; bin++) printf("%d: %d\n", bin, atomicAdd(&bins[bin], 0));
}
