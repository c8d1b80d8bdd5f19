// Matrix product: panels packed for the cache, and a block of the result in registers.
#include "job.h"
#include <omp.h>

#if defined __AVX512F__
constexpr int ROWS = 14; // 28 sums, 2 of B, 1 of A in 32 registers
typedef f32x16 Vector;
typedef f32x16_unaligned VectorUnaligned;
#else
constexpr int ROWS = 6; // 12 sums, 2 of B, 1 of A in 16 registers
typedef float Vector __attribute__((vector_size(32)));
typedef float VectorUnaligned __attribute__((vector_size(32), aligned(4)));
#endif
constexpr int LANES = sizeof(Vector) / 4, COLUMNS = 2 * LANES, DEPTH = 256, BLOCK = 4 * ROWS;

// c[ROWS][COLUMNS] += a · b, both packed.
static inline void block(const float *__restrict a, const float *__restrict b, int depth, float *__restrict c, int pitch, int rows) {
  Vector sum[ROWS][2] = {};
  for (int k = 0; k < depth; k++) {
    Vector b0 = *(const Vector *)(b + k * COLUMNS), b1 = *(const Vector *)(b + k * COLUMNS + LANES);
#pragma GCC unroll 14
    for (int i = 0; i < ROWS; i++) {
      float x = a[k * ROWS + i];
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < ROWS; i++) {
    if (i >= rows)
      break;
    *(VectorUnaligned *)(c + i * pitch) += sum[i][0];
    *(VectorUnaligned *)(c + i * pitch + LANES) += sum[i][1];
  }
}

static void product(const float *a, const float *b, float *c, int n) {
  static std::vector<float> room;
  room.resize((size_t)n * n + 16);
  float *panels = (float *)(((uintptr_t)room.data() + 63) & ~(uintptr_t)63);
#pragma omp parallel
  {
    alignas(64) float rows[BLOCK * DEPTH];
#pragma omp for schedule(static)
    for (int k0 = 0; k0 < n; k0 += DEPTH) {
      int depth = n - k0 < DEPTH ? n - k0 : DEPTH;
      for (int j = 0; j < n; j += COLUMNS)
        for (int k = 0; k < depth; k++)
          memcpy(panels + (size_t)k0 * n + j * depth + k * COLUMNS, b + (size_t)(k0 + k) * n + j, COLUMNS * sizeof(float));
    }
#pragma omp for schedule(dynamic, 1)
    for (int i0 = 0; i0 < n; i0 += BLOCK) {
      int high = n - i0 < BLOCK ? n - i0 : BLOCK;
      memset(c + (size_t)i0 * n, 0, (size_t)high * n * sizeof(float));
      for (int k0 = 0; k0 < n; k0 += DEPTH) {
        int depth = n - k0 < DEPTH ? n - k0 : DEPTH;
        for (int i = 0; i < high; i += ROWS) {
          int some = high - i < ROWS ? high - i : ROWS;
          for (int k = 0; k < depth; k++)
            for (int r = 0; r < some; r++)
              rows[i * depth + k * ROWS + r] = a[(size_t)(i0 + i + r) * n + k0 + k];
        }
        for (int j = 0; j < n; j += COLUMNS)
          for (int i = 0; i < high; i += ROWS)
            block(rows + i * depth, panels + (size_t)k0 * n + j * depth, depth, c + (size_t)(i0 + i) * n + j, n,
                  high - i < ROWS ? high - i : ROWS);
      }
    }
  }
}

static void sgemm(Job &job) { product(job.array<float>(0), job.array<float>(1), job.array<float>(2), job.number(0)); }

// A normal number or zero.
static inline float single(uint16_t half) {
  uint32_t bits = half & 0x7fff ? (uint32_t)(half & 0x7fff) * 0x2000 + 0x38000000 : 0, sign = (uint32_t)(half & 0x8000) << 16;
  float value;
  bits |= sign;
  memcpy(&value, &bits, 4);
  return value;
}

static void hgemm(Job &job) {
  int n = job.number(0);
  size_t all = (size_t)n * n;
  static std::vector<float> a, b;
  a.resize(all), b.resize(all);
  const uint16_t *from_a = job.array<uint16_t>(0), *from_b = job.array<uint16_t>(1);
#pragma omp parallel for simd schedule(static)
  for (size_t i = 0; i < all; i++)
    a[i] = single(from_a[i]), b[i] = single(from_b[i]);
  product(a.data(), b.data(), job.array<float>(2), n);
}

static void matvec(Job &job) {
  int rows = job.number(0), columns = job.number(1);
  const float *a = job.array<float>(0), *x = job.array<float>(1);
  float *y = job.array<float>(2);
#pragma omp parallel for schedule(static)
  for (int r = 0; r < rows; r++) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < columns; i++)
      sum += a[(size_t)r * columns + i] * x[i];
    y[r] = sum;
  }
}

std::vector<Entry> matrix() { return {{"sgemm", {sgemm}}, {"hgemm", {hgemm}}, {"matvec", {matvec}}}; }
