// Work that reads and writes much and computes little.
#include "job.h"
#include <omp.h>

static void saxpy(Job &job) {
  int n = job.number(0);
  float a = job.number<float>(1);
  const float *x = job.array<float>(0);
  float *y = job.array<float>(1);
#pragma omp parallel for simd schedule(static)
  for (int i = 0; i < n; i++)
    y[i] = a * x[i] + y[i];
}

// The sum of each part of the input that a CTA sums, so that both give the same number of results.
static void reduction(Job &job) {
  int n = job.number(0), parts = job.number(1);
  const float *in = job.array<float>(0);
  float *sums = job.array<float>(1);
#pragma omp parallel for schedule(static)
  for (int p = 0; p < parts; p++) {
    int each = n / parts;
    const float *from = in + (size_t)p * each;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < each; i++)
      sum += from[i];
    sums[p] = sum;
  }
}

static void stencil(Job &job) {
  int nx = job.number(0), ny = job.number(1), nz = job.number(2);
  float centre = job.number<float>(3), side = job.number<float>(4);
  const float *in = job.array<float>(0);
  float *out = job.array<float>(1);
#pragma omp parallel for collapse(2) schedule(static)
  for (int z = 0; z < nz; z++)
    for (int y = 0; y < ny; y++) {
      const float *i = in + ((size_t)z * ny + y) * nx;
      float *o = out + ((size_t)z * ny + y) * nx;
      if (y == 0 || z == 0 || y == ny - 1 || z == nz - 1) {
        memcpy(o, i, nx * sizeof(float));
        continue;
      }
      o[0] = i[0];
      o[nx - 1] = i[nx - 1];
      ptrdiff_t row = nx, plane = (ptrdiff_t)nx * ny;
#pragma omp simd
      for (int x = 1; x < nx - 1; x++) {
        float around = i[x - 1] + i[x + 1] + i[x - row] + i[x + row] + i[x - plane] + i[x + plane];
        o[x] = centre * i[x] + side * around;
      }
    }
}

// 16×16 elements in registers, by four rounds of interleaving.
static inline void transpose_16(const float *in, size_t in_pitch, float *out, size_t out_pitch) {
  f32x16 r[16], t[16];
  for (int i = 0; i < 16; i++)
    r[i] = *(const f32x16_unaligned *)(in + i * in_pitch);
#define ROUND(FROM, TO)                                                                                                \
  for (int i = 0; i < 8; i++) {                                                                                        \
    TO[2 * i] = __builtin_shufflevector(FROM[i], FROM[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);     \
    TO[2 * i + 1] =                                                                                                    \
        __builtin_shufflevector(FROM[i], FROM[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);       \
  }
  ROUND(r, t)
  ROUND(t, r)
  ROUND(r, t)
  ROUND(t, r)
#undef ROUND
  for (int i = 0; i < 16; i++)
    *(f32x16_unaligned *)(out + i * out_pitch) = r[i];
}

static void transpose_registers(Job &job) {
  int width = job.number(0), height = job.number(1);
  const float *in = job.array<float>(0);
  float *out = job.array<float>(1);
#pragma omp parallel for schedule(static)
  for (int x = 0; x < width; x += 64)
    for (int y = 0; y < height; y += 16)
      for (int i = 0; i < 64; i += 16)
        transpose_16(in + (size_t)y * width + x + i, width, out + (size_t)(x + i) * height + y, height);
}

static void transpose_tiles(Job &job) {
  int width = job.number(0), height = job.number(1);
  const float *in = job.array<float>(0);
  float *out = job.array<float>(1);
#pragma omp parallel for collapse(2) schedule(static)
  for (int x0 = 0; x0 < width; x0 += 32)
    for (int y0 = 0; y0 < height; y0 += 32)
      for (int x = x0; x < x0 + 32; x++)
        for (int y = y0; y < y0 + 32; y++)
          out[(size_t)x * height + y] = in[(size_t)y * width + x];
}

// Sums of parts, their prefix sums, then each part from where it begins.
static void scan(Job &job) {
  int n = job.number(0);
  const uint32_t *in = job.array<uint32_t>(0);
  uint32_t *out = job.array<uint32_t>(1);
  std::vector<uint32_t> sums(omp_get_max_threads() + 1);
#pragma omp parallel
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
    size_t from = (size_t)n * me / all, to = (size_t)n * (me + 1) / all;
    uint32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = from; i < to; i++)
      sum += in[i];
    sums[me + 1] = sum;
#pragma omp barrier
    uint32_t run = 0;
    for (int i = 0; i <= me; i++)
      run += sums[i];
#pragma omp simd reduction(inscan, + : run)
    for (size_t i = from; i < to; i++) {
      run += in[i];
#pragma omp scan inclusive(run)
      out[i] = run;
    }
  }
}

// The same in pieces that stay in the cache between the two passes of a thread.
static void scan_pieces(Job &job) {
  int n = job.number(0);
  const uint32_t *in = job.array<uint32_t>(0);
  uint32_t *out = job.array<uint32_t>(1);
  constexpr size_t PIECE = 32768;
  int all = omp_get_max_threads();
  std::vector<uint32_t> sums(all + 1);
  uint32_t before = 0;
  for (size_t base = 0; base < (size_t)n; base += PIECE * all) {
#pragma omp parallel
    {
      int me = omp_get_thread_num();
      size_t from = base + PIECE * me, to = from + PIECE;
      from = from < (size_t)n ? from : n, to = to < (size_t)n ? to : n;
      uint32_t sum = 0;
#pragma omp simd reduction(+ : sum)
      for (size_t i = from; i < to; i++)
        sum += in[i];
      sums[me + 1] = sum;
#pragma omp barrier
      uint32_t run = before;
      for (int i = 0; i <= me; i++)
        run += sums[i];
      for (size_t i = from; i < to; i++)
        out[i] = run += in[i];
    }
    for (int i = 1; i <= all; i++)
      before += sums[i];
  }
}

struct Particle {
  float x, y, z, vx, vy, vz;
};

static inline void bounce(float &at, float &speed) {
  float low = -at, high = 2.0f - at, slower = -0.9f * speed;
  bool below = at < 0.0f, above = at > 1.0f;
  at = below ? low : above ? high : at;
  speed = below || above ? slower : speed;
}

static void particles(Job &job) {
  int n = job.number(0), turns = job.number(2);
  float dt = job.number<float>(1);
  Particle *all = job.array<Particle>(0);
#pragma omp parallel for simd schedule(static)
  for (int i = 0; i < n; i++) {
    Particle p = all[i];
    for (int t = 0; t < turns; t++) {
      p.vy -= 9.81f * dt;
      p.x += p.vx * dt;
      p.y += p.vy * dt;
      p.z += p.vz * dt;
      bounce(p.x, p.vx);
      bounce(p.y, p.vy);
      bounce(p.z, p.vz);
    }
    all[i] = p;
  }
}

std::vector<Entry> streaming() {
  return {{"saxpy", {saxpy}},
          {"reduction", {reduction}},
          {"stencil", {stencil}},
          {"transpose", {transpose_registers, transpose_tiles}},
          {"scan", {scan, scan_pieces}}, {"particles", {particles}}};
}
