// flags: -ffast-math
// The functions of the mathematical library as vectors, approximate roots, sums in any order.
#include "job.h"
#include <algorithm>
#include <cmath>
#if defined __AVX512F__
#include <immintrin.h>
#endif

// The approximate root of the processor, with one step of Newton.
static inline f32x16 reciprocal_root(f32x16 a) {
#if defined __AVX512F__
  f32x16 r = _mm512_rsqrt14_ps(a);
  return r * (1.5f - 0.5f * a * r * r);
#else
  f32x16 r;
  for (int i = 0; i < 16; i++)
    r[i] = 1.0f / sqrtf(a[i]);
  return r;
#endif
}

#pragma omp declare simd notinbranch
static inline float normal_cdf(float d) {
  const float A1 = 0.31938153f, A2 = -0.356563782f, A3 = 1.781477937f, A4 = -1.821255978f, A5 = 1.330274429f;
  float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  float tail = 0.39894228040143267794f * expf(-0.5f * d * d) * (k * (A1 + k * (A2 + k * (A3 + k * (A4 + k * A5)))));
  return d > 0.0f ? 1.0f - tail : tail;
}

static void black_scholes(Job &job) {
  int n = job.number(2);
  float rate = job.number<float>(0), volatility = job.number<float>(1);
  float *__restrict call = job.array<float>(0), *__restrict put = job.array<float>(1);
  const float *__restrict price = job.array<float>(2), *__restrict strike = job.array<float>(3), *__restrict years = job.array<float>(4);
#pragma omp parallel for simd schedule(static)
  for (int i = 0; i < n; i++) {
    float s = price[i], x = strike[i], t = years[i];
    float root = sqrtf(t);
    float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = normal_cdf(d1), n2 = normal_cdf(d2);
    float discounted = x * expf(-rate * t);
    call[i] = s * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
  }
}

// 64 bodies at once, in registers; each of all others in turn.
static void nbody(Job &job) {
  int n = job.number(0);
  float softening = job.number<float>(1);
  struct Body {
    float x, y, z, w;
  };
  const Body *bodies = job.array<Body>(0);
  Body *acceleration = job.array<Body>(1);
  constexpr int V = 4;
#pragma omp parallel for schedule(static)
  for (int base = 0; base < n; base += 16 * V) {
    f32x16 x[V], y[V], z[V], ax[V] = {}, ay[V] = {}, az[V] = {};
    for (int v = 0; v < V; v++)
      for (int i = 0; i < 16; i++) {
        const Body &b = bodies[base + 16 * v + i];
        x[v][i] = b.x, y[v][i] = b.y, z[v][i] = b.z;
      }
    for (int j = 0; j < n; j++) {
      Body b = bodies[j];
#pragma GCC unroll 4
      for (int v = 0; v < V; v++) {
        f32x16 dx = b.x - x[v], dy = b.y - y[v], dz = b.z - z[v];
        f32x16 inv = reciprocal_root(dx * dx + dy * dy + dz * dz + softening);
        f32x16 s = b.w * (inv * inv * inv);
        ax[v] += dx * s;
        ay[v] += dy * s;
        az[v] += dz * s;
      }
    }
    for (int v = 0; v < V; v++)
      for (int i = 0; i < 16; i++)
        acceleration[base + 16 * v + i] = Body{ax[v][i], ay[v][i], az[v][i], 0.0f};
  }
}

static void softmax(Job &job) {
  int rows = job.number(0), columns = job.number(1);
  const float *in = job.array<float>(0);
  float *out = job.array<float>(1);
#pragma omp parallel for schedule(static)
  for (int r = 0; r < rows; r++) {
    const float *row = in + (size_t)r * columns;
    float *to = out + (size_t)r * columns;
    float top = row[0], sum = 0;
    for (int i = 0; i < columns; i++)
      top = std::max(top, row[i]);
    for (int i = 0; i < columns; i++)
      sum += to[i] = std::exp(row[i] - top);
    float scale = 1.0f / sum;
    for (int i = 0; i < columns; i++)
      to[i] *= scale;
  }
}

static void waves(Job &job) {
  int count = job.number(0), width = job.number(1), height = job.number(2);
  float step = job.number<float>(3);
  const float *sources = job.array<float>(0);
  float *out = job.array<float>(1);
#pragma omp parallel for schedule(static)
  for (int py = 0; py < height; py++)
    for (int px = 0; px < width; px += 64) {
      float re[64] = {}, im[64] = {};
      for (int i = 0; i < count; i++) {
        const float *s = sources + 4 * i;
        float dy = py * step - s[1];
        for (int j = 0; j < 64; j++) {
          float dx = (px + j) * step - s[0];
          float angle = s[2] * sqrtf(dx * dx + dy * dy) + s[3];
          re[j] += cosf(angle);
          im[j] += sinf(angle);
        }
      }
      for (int j = 0; j < 64; j++)
        out[(size_t)py * width + px + j] = re[j] * re[j] + im[j] * im[j];
    }
}

std::vector<Entry> approximate() {
  return {{"black_scholes", {black_scholes}}, {"nbody", {nbody}}, {"softmax", {softmax}}, {"waves", {waves}}};
}
