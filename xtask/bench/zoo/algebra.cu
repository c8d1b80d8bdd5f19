// Matrices: products, factorisations, sparse matrices, small and banded systems.
#include "zoo.cuh"

// One element for each thread, straight from global memory.
KERNEL gemm_plain(const float *a, const float *b, float *c, int m, int n, int k) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n)
    return;
  float sum = 0.0f;
  for (int i = 0; i < k; i++)
    sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}

// 128x128 elements for a CTA of 256, 8x8 in the registers of a thread.
KERNEL gemm_8x8(const float *a, const float *b, float *c, int n) {
  constexpr int T = 128, K = 8;
  __shared__ float as[K][T], bs[K][T];
  int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const float *from_a = a + (blockIdx.y * T + t / 2) * n + t % 2 * 4, *from_b = b + t / 32 * n + blockIdx.x * T + t % 32 * 4;
  float sum[8][8] = {};
  for (int k0 = 0; k0 < n; k0 += K) {
    float4 va = *(const float4 *)(from_a + k0), vb = *(const float4 *)(from_b + k0 * n);
    as[t % 2 * 4 + 0][t / 2] = va.x;
    as[t % 2 * 4 + 1][t / 2] = va.y;
    as[t % 2 * 4 + 2][t / 2] = va.z;
    as[t % 2 * 4 + 3][t / 2] = va.w;
    *(float4 *)&bs[t / 32][t % 32 * 4] = vb;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; k++) {
      float x[8], y[8];
#pragma unroll
      for (int j = 0; j < 8; j++) {
        x[j] = as[k][ty * 8 + j];
        y[j] = bs[k][tx * 8 + j];
      }
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
          sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++)
      c[(blockIdx.y * T + ty * 8 + i) * n + blockIdx.x * T + tx * 8 + j] = sum[i][j];
}

// Double precision with tiles of 16.
KERNEL gemm_double(const double *a, const double *b, double *c, int n) {
  __shared__ double as[16][16], bs[16][17];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  double sum = 0.0;
  for (int k0 = 0; k0 < n; k0 += 16) {
    as[ty][tx] = a[row * n + k0 + tx];
    bs[ty][tx] = b[(k0 + ty) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; k++)
      sum += as[ty][k] * bs[k][tx];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

// Bytes with sums of 32 bits; the second matrix lies transposed.
KERNEL gemm_bytes(const int8_t *a, const int8_t *b, int *c, int m, int n, int k) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n)
    return;
  int sum = 0;
  for (int i = 0; i < k; i += 4) {
    char4 x = *(const char4 *)(a + row * k + i), y = *(const char4 *)(b + col * k + i);
    sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
  }
  c[row * n + col] = sum;
}

// LU factorisation without pivots in blocks of 16: the block on the diagonal, those right of and below it, the rest.
KERNEL lu_diagonal(float *a, int n, int at) {
  __shared__ float s[16][17];
  int t = threadIdx.x;
  float *corner = a + at * n + at;
  for (int i = 0; i < 16; i++)
    s[i][t] = corner[i * n + t];
  __syncthreads();
  for (int k = 0; k < 15; k++) {
    if (t > k) {
      float factor = s[t][k] / s[k][k];
      s[t][k] = factor;
      for (int j = k + 1; j < 16; j++)
        s[t][j] -= factor * s[k][j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 16; i++)
    corner[i * n + t] = s[i][t];
}
KERNEL lu_edges(float *a, int n, int at) {
  __shared__ float diagonal[16][17], row[16][17], column[16][17];
  int t = threadIdx.x % 16, other = at + 16 * (blockIdx.x + 1);
  for (int i = threadIdx.x / 16; i < 16; i += 2) {
    diagonal[i][t] = a[(at + i) * n + at + t];
    row[i][t] = a[(at + i) * n + other + t];
    column[i][t] = a[(other + i) * n + at + t];
  }
  __syncthreads();
  if (threadIdx.x < 16) {
    for (int i = 1; i < 16; i++)
      for (int k = 0; k < i; k++)
        row[i][t] -= diagonal[i][k] * row[k][t];
  } else {
    for (int j = 0; j < 16; j++) {
      for (int k = 0; k < j; k++)
        column[t][j] -= column[t][k] * diagonal[k][j];
      column[t][j] /= diagonal[j][j];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x / 16; i < 16; i += 2) {
    a[(at + i) * n + other + t] = row[i][t];
    a[(other + i) * n + at + t] = column[i][t];
  }
}
KERNEL lu_inside(float *a, int n, int at) {
  __shared__ float row[16][16], column[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int x = at + 16 * (blockIdx.x + 1) + tx, y = at + 16 * (blockIdx.y + 1) + ty;
  row[ty][tx] = a[(at + ty) * n + x];
  column[ty][tx] = a[y * n + at + tx];
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 16; k++)
    sum += column[ty][k] * row[k][tx];
  a[y * n + x] -= sum;
}

// Compressed rows, one thread for each.
KERNEL spmv_row(const int *begins, const int *columns, const float *values, const float *x, float *y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float sum = 0.0f;
  for (int i = begins[row]; i < begins[row + 1]; i++)
    sum += values[i] * x[columns[i]];
  y[row] = sum;
}

// One warp for each row.
KERNEL spmv_warp(const int *begins, const int *columns, const float *values, const float *x, float *y, int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  float sum = 0.0f;
  for (int i = begins[row] + lane; i < begins[row + 1]; i += 32)
    sum += values[i] * x[columns[i]];
  for (int d = 16; d > 0; d /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (lane == 0)
    y[row] = sum;
}

// Every row has as many entries, stored by columns (ELLPACK).
KERNEL spmv_ell(const int *columns, const float *values, const float *x, float *y, int rows, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float sum = 0.0f;
  for (int k = 0; k < width; k++) {
    int column = columns[k * rows + row];
    if (column >= 0)
      sum += values[k * rows + row] * x[column];
  }
  y[row] = sum;
}

// A matrix's transpose times a vector: slices of rows for each CTA, then atomics.
KERNEL gemv_transposed(const float *a, const float *x, float *y, int rows, int columns, int slice) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns)
    return;
  int begin = blockIdx.y * slice, end = min(begin + slice, rows);
  float sum = 0.0f;
  for (int row = begin; row < end; row++)
    sum += a[row * columns + column] * x[row];
  atomicAdd(&y[column], sum);
}

// Inverses of 4x4 matrices that lie one behind the other, by cofactors.
struct Matrix4 {
  float m[16];
};
KERNEL inverse4(const Matrix4 *in, Matrix4 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Matrix4 a = in[i], b;
  float *m = a.m;
  float s0 = m[0] * m[5] - m[4] * m[1], s1 = m[0] * m[6] - m[4] * m[2], s2 = m[0] * m[7] - m[4] * m[3];
  float s3 = m[1] * m[6] - m[5] * m[2], s4 = m[1] * m[7] - m[5] * m[3], s5 = m[2] * m[7] - m[6] * m[3];
  float c5 = m[10] * m[15] - m[14] * m[11], c4 = m[9] * m[15] - m[13] * m[11], c3 = m[9] * m[14] - m[13] * m[10];
  float c2 = m[8] * m[15] - m[12] * m[11], c1 = m[8] * m[14] - m[12] * m[10], c0 = m[8] * m[13] - m[12] * m[9];
  float d = 1.0f / (s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0);
  b.m[0] = (m[5] * c5 - m[6] * c4 + m[7] * c3) * d;
  b.m[1] = (-m[1] * c5 + m[2] * c4 - m[3] * c3) * d;
  b.m[2] = (m[13] * s5 - m[14] * s4 + m[15] * s3) * d;
  b.m[3] = (-m[9] * s5 + m[10] * s4 - m[11] * s3) * d;
  b.m[4] = (-m[4] * c5 + m[6] * c2 - m[7] * c1) * d;
  b.m[5] = (m[0] * c5 - m[2] * c2 + m[3] * c1) * d;
  b.m[6] = (-m[12] * s5 + m[14] * s2 - m[15] * s1) * d;
  b.m[7] = (m[8] * s5 - m[10] * s2 + m[11] * s1) * d;
  b.m[8] = (m[4] * c4 - m[5] * c2 + m[7] * c0) * d;
  b.m[9] = (-m[0] * c4 + m[1] * c2 - m[3] * c0) * d;
  b.m[10] = (m[12] * s4 - m[13] * s2 + m[15] * s0) * d;
  b.m[11] = (-m[8] * s4 + m[9] * s2 - m[11] * s0) * d;
  b.m[12] = (-m[4] * c3 + m[5] * c1 - m[6] * c0) * d;
  b.m[13] = (m[0] * c3 - m[1] * c1 + m[2] * c0) * d;
  b.m[14] = (-m[12] * s3 + m[13] * s1 - m[14] * s0) * d;
  b.m[15] = (m[8] * s3 - m[9] * s1 + m[10] * s0) * d;
  out[i] = b;
}

// Tridiagonal systems by Thomas's algorithm, one for each thread, interleaved.
KERNEL tridiagonal(const float *lower, const float *diagonal, const float *upper, const float *right, float *scratch, float *x,
                   int n, int systems) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= systems)
    return;
  float c = upper[s] / diagonal[s], d = right[s] / diagonal[s];
  scratch[s] = c;
  x[s] = d;
  for (int i = 1; i < n; i++) {
    int at = i * systems + s;
    float pivot = 1.0f / (diagonal[at] - lower[at] * c);
    c = upper[at] * pivot;
    d = (right[at] - lower[at] * d) * pivot;
    scratch[at] = c;
    x[at] = d;
  }
  for (int i = n - 2; i >= 0; i--) {
    d = x[i * systems + s] - scratch[i * systems + s] * d;
    x[i * systems + s] = d;
  }
}
