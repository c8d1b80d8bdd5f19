// The sum of 0, 1, ... n-1: each block adds up its part in shared memory, and adds the result to the total in global memory. The block that
// comes last prints the total.
#include "device.h"

extern "C" __global__ void reduce(int n, int *total, int *blocks_done) {
  __shared__ int part[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? i : 0;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) {
    atomicAdd(total, part[0]);
    __nvvm_membar_gl();
    if (atomicAdd(blocks_done, 1) == gridDim.x - 1) printf("the sum is %d\n", atomicAdd(total, 0));
  }
}
