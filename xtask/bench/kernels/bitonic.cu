// Sorts tiles of 1024 keys in shared memory with a bitonic network: one comparator per thread, and the textbook form with one
// key per thread.
#include "prelude.cuh"

__device__ __forceinline__ void order(unsigned &a, unsigned &b, bool up) {
  if ((a > b) == up) {
    unsigned t = a;
    a = b;
    b = t;
  }
}

KERNEL bitonic_pairs(unsigned *keys) {
  __shared__ unsigned key[1024];
  unsigned t = threadIdx.x, base = blockIdx.x * 1024;
  key[t] = keys[base + t];
  key[t + 512] = keys[base + t + 512];
  for (unsigned size = 2; size < 1024; size <<= 1) {
    bool up = (t & (size / 2)) == 0;
    for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      unsigned at = 2 * t - (t & (stride - 1));
      order(key[at], key[at + stride], up);
    }
  }
  for (unsigned stride = 512; stride > 0; stride >>= 1) {
    __syncthreads();
    unsigned at = 2 * t - (t & (stride - 1));
    order(key[at], key[at + stride], true);
  }
  __syncthreads();
  keys[base + t] = key[t];
  keys[base + t + 512] = key[t + 512];
}

KERNEL bitonic_keys(unsigned *keys) {
  __shared__ unsigned key[1024];
  unsigned t = threadIdx.x, base = blockIdx.x * 1024;
  key[t] = keys[base + t];
  __syncthreads();
  for (unsigned size = 2; size <= 1024; size <<= 1)
    for (unsigned stride = size >> 1; stride > 0; stride >>= 1) {
      unsigned other = t ^ stride;
      if (other > t && (key[t] > key[other]) == ((t & size) == 0)) {
        unsigned k = key[t];
        key[t] = key[other];
        key[other] = k;
      }
      __syncthreads();
    }
  keys[base + t] = key[t];
}
