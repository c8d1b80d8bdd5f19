// C = A·B for square matrices of a multiple of 64: one element per thread with tiles of 16 and 32 in shared memory, and
// 4×4 elements per thread with tiles of 64.
#include "prelude.cuh"

template <int T> __device__ __forceinline__ void tiled(const float *a, const float *b, float *c, int n) {
  __shared__ float as[T][T], bs[T][T];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * T + ty, col = blockIdx.x * T + tx;
  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += T) {
    as[ty][tx] = a[row * n + k0 + tx];
    bs[ty][tx] = b[(k0 + ty) * n + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < T; k++)
      sum += as[ty][k] * bs[k][tx];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

KERNEL sgemm_16(const float *a, const float *b, float *c, int n) { tiled<16>(a, b, c, n); }
KERNEL sgemm_32(const float *a, const float *b, float *c, int n) { tiled<32>(a, b, c, n); }

KERNEL sgemm_4x4(const float *a, const float *b, float *c, int n) {
  constexpr int T = 64, K = 16;
  __shared__ float as[K][T], bs[K][T];
  int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
  const float *ablock = a + blockIdx.y * T * n, *bblock = b + blockIdx.x * T;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += K) {
    for (int j = 0; j < 4; j++) {
      int i = t + 256 * j;
      as[i % K][i / K] = ablock[(i / K) * n + k0 + i % K];
      bs[i / T][i % T] = bblock[(k0 + i / T) * n + i % T];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; k++) {
      float x[4], y[4];
      for (int j = 0; j < 4; j++) {
        x[j] = as[k][ty * 4 + j];
        y[j] = bs[k][tx + 16 * j];
      }
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
          sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      c[(blockIdx.y * T + ty * 4 + i) * n + blockIdx.x * T + tx + 16 * j] = sum[i][j];
}
