// Softmax of each row by one CTA: largest element, sum of exponentials, quotient; the parts meet by shuffles and in shared memory.
#include "prelude.cuh"

__device__ __forceinline__ float across(float v, bool largest, float *part) {
  for (int d = 16; d > 0; d >>= 1) {
    float other = __shfl_xor_sync(0xffffffffu, v, d);
    v = largest ? fmaxf(v, other) : v + other;
  }
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0)
    part[warp] = v;
  __syncthreads();
  v = part[lane % (blockDim.x / 32)];
  for (int d = 4; d > 0; d >>= 1) {
    float other = __shfl_xor_sync(0xffffffffu, v, d);
    v = largest ? fmaxf(v, other) : v + other;
  }
  __syncthreads();
  return v;
}

KERNEL softmax(const float *in, float *out, int columns) {
  __shared__ float part[8];
  const float *row = in + blockIdx.x * columns;
  float *to = out + blockIdx.x * columns;
  float top = -1e30f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    top = fmaxf(top, row[i]);
  top = across(top, true, part);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float e = exp2_approx((row[i] - top) * 1.44269504f);
    to[i] = e;
    sum += e;
  }
  sum = across(sum, false, part);
  float scale = 1.0f / sum;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    to[i] *= scale;
}
