// Matrices, as one writes them for a CPU: blocks for the caches, vectors along rows.
// flags: -ffast-math
#include "job.h"
#include <algorithm>

// Four rows by blocks of columns, sums in the order of the first index.
template <typename T> static void product(const T *a, const T *b, T *c, int m, int n, int k) {
  constexpr int R = 4, C = 64;
#pragma omp parallel for schedule(static) collapse(2)
  for (int row = 0; row < m; row += R)
    for (int col = 0; col < n; col += C) {
      T sum[R][C] = {};
      int rows = std::min(R, m - row), columns = std::min(C, n - col);
      if (rows == R && columns == C)
        for (int i = 0; i < k; i++)
          for (int r = 0; r < R; r++)
            for (int j = 0; j < C; j++)
              sum[r][j] += a[(row + r) * k + i] * b[i * n + col + j];
      else
        for (int i = 0; i < k; i++)
          for (int r = 0; r < rows; r++)
            for (int j = 0; j < columns; j++)
              sum[r][j] += a[(row + r) * k + i] * b[i * n + col + j];
      for (int r = 0; r < rows; r++)
        for (int j = 0; j < columns; j++)
          c[(row + r) * n + col + j] = sum[r][j];
    }
}

NATIVE(gemm_plain) {
  product(job.array<float>(0), job.array<float>(1), job.array<float>(2), job.number(0), job.number(1), job.number(2));
}
NATIVE(gemm_8x8) {
  int n = job.number(0);
  product(job.array<float>(0), job.array<float>(1), job.array<float>(2), n, n, n);
}
NATIVE(gemm_double) {
  int n = job.number(0);
  product(job.array<double>(0), job.array<double>(1), job.array<double>(2), n, n, n);
}

NATIVE(gemm_bytes) {
  const int8_t *a = job.array<int8_t>(0), *b = job.array<int8_t>(1);
  int *c = job.array<int>(2);
  int m = job.number(0), n = job.number(1), k = job.number(2);
#pragma omp parallel for schedule(static)
  for (int row = 0; row < m; row++)
    for (int col = 0; col < n; col++) {
      int sum = 0;
      for (int i = 0; i < k; i++)
        sum += a[row * k + i] * b[col * k + i];
      c[row * n + col] = sum;
    }
}

NATIVE(lu) {
  float *a = job.array<float>(0);
  int n = job.number(0);
  for (int at = 0; at < n; at += 16) {
    int end = at + 16;
    // The column of blocks, then the row of blocks, then the rest.
    for (int k = at; k < end; k++)
      for (int i = k + 1; i < end; i++) {
        float factor = a[i * n + k] /= a[k * n + k];
        for (int j = k + 1; j < end; j++)
          a[i * n + j] -= factor * a[k * n + j];
      }
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
      for (int i = end; i < n; i++)
        for (int k = at; k < end; k++) {
          float factor = a[i * n + k] /= a[k * n + k];
          for (int j = k + 1; j < end; j++)
            a[i * n + j] -= factor * a[k * n + j];
        }
#pragma omp for schedule(static)
      for (int block = end; block < n; block += 16)
        for (int i = at + 1; i < end; i++)
          for (int k = at; k < i; k++)
            for (int j = block; j < block + 16; j++)
              a[i * n + j] -= a[i * n + k] * a[k * n + j];
#pragma omp for schedule(static)
      for (int i = end; i < n; i++) {
        float *__restrict to = a + i * n;
        for (int block = end; block < n; block += 64) {
          int columns = std::min(64, n - block);
          for (int k = at; k < end; k++) {
            float factor = to[k];
            const float *from = a + k * n + block;
#pragma omp simd
            for (int j = 0; j < columns; j++)
              to[block + j] -= factor * from[j];
          }
        }
      }
    }
  }
}

static void sparse(Job &job) {
  const int *begins = job.array<int>(0), *columns = job.array<int>(1);
  const float *values = job.array<float>(2), *x = job.array<float>(3);
  float *y = job.array<float>(4);
  int rows = job.number(0);
#pragma omp parallel for schedule(static)
  for (int row = 0; row < rows; row++) {
    float sum = 0.0f;
    for (int i = begins[row]; i < begins[row + 1]; i++)
      sum += values[i] * x[columns[i]];
    y[row] = sum;
  }
}
NATIVE(spmv_row) { sparse(job); }
NATIVE(spmv_warp) { sparse(job); }

NATIVE(spmv_ell) {
  const int *__restrict columns = job.array<int>(0);
  const float *__restrict values = job.array<float>(1), *__restrict x = job.array<float>(2);
  float *__restrict y = job.array<float>(3);
  int rows = job.number(0), width = job.number(1);
#pragma omp parallel for schedule(static)
  for (int base = 0; base < rows; base += 256) {
    int count = std::min(256, rows - base);
    float sums[256] = {};
    for (int k = 0; k < width; k++) {
      const int *column = columns + k * rows + base;
      const float *value = values + k * rows + base;
#pragma omp simd
      for (int r = 0; r < count; r++)
        if (column[r] >= 0)
          sums[r] += value[r] * x[column[r]];
    }
    std::copy(sums, sums + count, y + base);
  }
}

NATIVE(gemv_transposed) {
  const float *__restrict a = job.array<float>(0), *__restrict x = job.array<float>(1);
  float *__restrict y = job.array<float>(2);
  int rows = job.number(0), columns = job.number(1);
#pragma omp parallel
  {
    std::vector<float> sums(columns);
    float *__restrict to = sums.data();
#pragma omp for schedule(static)
    for (int row = 0; row < rows; row++)
      for (int c = 0; c < columns; c++)
        to[c] += a[row * columns + c] * x[row];
#pragma omp critical
    for (int c = 0; c < columns; c++)
      y[c] += to[c];
  }
}

NATIVE(inverse4) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int n = job.number(0);
#pragma omp parallel for simd schedule(static)
  for (int i = 0; i < n; i++) {
    const float *m = in + 16 * i;
    float *b = out + 16 * i;
    float s0 = m[0] * m[5] - m[4] * m[1], s1 = m[0] * m[6] - m[4] * m[2], s2 = m[0] * m[7] - m[4] * m[3];
    float s3 = m[1] * m[6] - m[5] * m[2], s4 = m[1] * m[7] - m[5] * m[3], s5 = m[2] * m[7] - m[6] * m[3];
    float c5 = m[10] * m[15] - m[14] * m[11], c4 = m[9] * m[15] - m[13] * m[11], c3 = m[9] * m[14] - m[13] * m[10];
    float c2 = m[8] * m[15] - m[12] * m[11], c1 = m[8] * m[14] - m[12] * m[10], c0 = m[8] * m[13] - m[12] * m[9];
    float d = 1.0f / (s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0);
    b[0] = (m[5] * c5 - m[6] * c4 + m[7] * c3) * d;
    b[1] = (-m[1] * c5 + m[2] * c4 - m[3] * c3) * d;
    b[2] = (m[13] * s5 - m[14] * s4 + m[15] * s3) * d;
    b[3] = (-m[9] * s5 + m[10] * s4 - m[11] * s3) * d;
    b[4] = (-m[4] * c5 + m[6] * c2 - m[7] * c1) * d;
    b[5] = (m[0] * c5 - m[2] * c2 + m[3] * c1) * d;
    b[6] = (-m[12] * s5 + m[14] * s2 - m[15] * s1) * d;
    b[7] = (m[8] * s5 - m[10] * s2 + m[11] * s1) * d;
    b[8] = (m[4] * c4 - m[5] * c2 + m[7] * c0) * d;
    b[9] = (-m[0] * c4 + m[1] * c2 - m[3] * c0) * d;
    b[10] = (m[12] * s4 - m[13] * s2 + m[15] * s0) * d;
    b[11] = (-m[8] * s4 + m[9] * s2 - m[11] * s0) * d;
    b[12] = (-m[4] * c3 + m[5] * c1 - m[6] * c0) * d;
    b[13] = (m[0] * c3 - m[1] * c1 + m[2] * c0) * d;
    b[14] = (-m[12] * s3 + m[13] * s1 - m[14] * s0) * d;
    b[15] = (m[8] * s3 - m[9] * s1 + m[10] * s0) * d;
  }
}

NATIVE(tridiagonal) {
  const float *__restrict lower = job.array<float>(0), *__restrict diagonal = job.array<float>(1);
  const float *__restrict upper = job.array<float>(2), *__restrict right = job.array<float>(3);
  float *__restrict scratch = job.array<float>(4), *__restrict x = job.array<float>(5);
  int n = job.number(0), systems = job.number(1);
#pragma omp parallel for schedule(static)
  for (int base = 0; base < systems; base += 64) {
    int count = std::min(64, systems - base);
    float c[64], d[64];
#pragma omp simd
    for (int s = 0; s < count; s++) {
      scratch[base + s] = c[s] = upper[base + s] / diagonal[base + s];
      x[base + s] = d[s] = right[base + s] / diagonal[base + s];
    }
    for (int i = 1; i < n; i++)
#pragma omp simd
      for (int s = 0; s < count; s++) {
        int at = i * systems + base + s;
        float pivot = 1.0f / (diagonal[at] - lower[at] * c[s]);
        scratch[at] = c[s] = upper[at] * pivot;
        x[at] = d[s] = (right[at] - lower[at] * d[s]) * pivot;
      }
    for (int i = n - 2; i >= 0; i--)
#pragma omp simd
      for (int s = 0; s < count; s++) {
        int at = i * systems + base + s;
        x[at] = d[s] = x[at] - scratch[at] * d[s];
      }
  }
}
