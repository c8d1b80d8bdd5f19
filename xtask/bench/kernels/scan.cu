// Inclusive prefix sums of any length: sums of CTAs of 1024 elements by shuffles, a scan of these sums, then their addition.
#include "prelude.cuh"

__device__ __forceinline__ unsigned warp_scan(unsigned v, int lane) {
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    unsigned left = __shfl_up_sync(0xffffffffu, (int)v, d);
    if (lane >= d)
      v += left;
  }
  return v;
}

__device__ __forceinline__ unsigned cta_scan(unsigned v, unsigned *warps) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  v = warp_scan(v, lane);
  if (lane == 31)
    warps[warp] = v;
  __syncthreads();
  if (warp == 0)
    warps[lane] = warp_scan(lane < (int)(blockDim.x >> 5) ? warps[lane] : 0u, lane);
  __syncthreads();
  if (warp > 0)
    v += warps[warp - 1];
  return v;
}

KERNEL scan_blocks(const unsigned *in, unsigned *out, unsigned *totals, int n) {
  __shared__ unsigned warps[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = cta_scan(i < n ? in[i] : 0u, warps);
  if (i < n)
    out[i] = v;
  if (threadIdx.x == blockDim.x - 1)
    totals[blockIdx.x] = v;
}

// One CTA scans all totals in place.
KERNEL scan_totals(unsigned *totals, int n) {
  __shared__ unsigned warps[32], carry;
  if (threadIdx.x == 0)
    carry = 0;
  for (int base = 0; base < n; base += blockDim.x) {
    int i = base + threadIdx.x;
    unsigned v = cta_scan(i < n ? totals[i] : 0u, warps);
    unsigned before = carry;
    if (i < n)
      totals[i] = v + before;
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1)
      carry = before + v;
    __syncthreads();
  }
}

KERNEL scan_add(unsigned *out, const unsigned *totals, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n)
    out[i] += totals[blockIdx.x - 1];
}
