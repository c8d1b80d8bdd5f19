// Pi by counting points in a quarter of a disc, xorshift in each thread; the counts of a CTA meet in shared memory.
#include "prelude.cuh"

KERNEL monte_carlo(unsigned *hits, int each) {
  __shared__ unsigned total;
  if (threadIdx.x == 0)
    total = 0;
  __syncthreads();
  unsigned s = (blockIdx.x * blockDim.x + threadIdx.x + 1) * 2654435761u;
  unsigned inside = 0;
  for (int i = 0; i < each; i++) {
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    float x = (float)(s >> 8) * (1.0f / 16777216.0f);
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    float y = (float)(s >> 8) * (1.0f / 16777216.0f);
    if (x * x + y * y < 1.0f)
      inside++;
  }
  atomicAdd(&total, inside);
  __syncthreads();
  if (threadIdx.x == 0)
    atomicAdd(hits, total);
}
