// Transforms, ciphers, checksums and codes, as one writes them for a CPU.
#include "job.h"
#include <algorithm>
#include <cmath>

// Stages with vectors over the butterflies of a group, real and imaginary parts apart.
NATIVE(fft1024) {
  const float *in = job.array<float>(0), *roots = job.array<float>(2);
  float *out = job.array<float>(1);
  int signals = job.arrays[0].bytes / 8192;
  int reversed[1024];
  for (int i = 0; i < 1024; i++) {
    reversed[i] = 0;
    for (int b = 0; b < 10; b++)
      reversed[i] |= (i >> b & 1) << (9 - b);
  }
  // Roots of all stages, one stage behind the other.
  std::vector<float> wr(1024), wi(1024);
  for (int half = 1; half < 1024; half *= 2)
    for (int k = 0; k < half; k++) {
      wr[half + k] = roots[2 * k * (512 / half)];
      wi[half + k] = roots[2 * k * (512 / half) + 1];
    }
#pragma omp parallel for schedule(static)
  for (int s = 0; s < signals; s++) {
    float re[1024], im[1024];
    for (int i = 0; i < 1024; i++) {
      re[reversed[i]] = in[s * 2048 + 2 * i];
      im[reversed[i]] = in[s * 2048 + 2 * i + 1];
    }
    for (int half = 1; half < 1024; half *= 2)
      for (int base = 0; base < 1024; base += 2 * half)
#pragma omp simd
        for (int k = 0; k < half; k++) {
          int a = base + k, b = a + half;
          float xr = re[b] * wr[half + k] - im[b] * wi[half + k], xi = re[b] * wi[half + k] + im[b] * wr[half + k];
          re[b] = re[a] - xr;
          im[b] = im[a] - xi;
          re[a] += xr;
          im[a] += xi;
        }
    for (int i = 0; i < 1024; i++) {
      out[s * 2048 + 2 * i] = re[i];
      out[s * 2048 + 2 * i + 1] = im[i];
    }
  }
}

NATIVE(dct8) {
  const uint8_t *in = job.array<uint8_t>(0);
  int16_t *out = job.array<int16_t>(1);
  const float *basis = job.array<float>(2);
  int w = job.number(0), h = job.arrays[0].bytes / w;
#pragma omp parallel for schedule(static)
  for (int by = 0; by < h; by += 8)
    for (int bx = 0; bx < w; bx += 8) {
      float s[8][8], rows[8][8] = {}, all[8][8] = {};
      for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
          s[y][x] = in[(by + y) * w + bx + x] - 128.0f;
      // Sums over rows first, because they are vectors.
      for (int y = 0; y < 8; y++)
        for (int k = 0; k < 8; k++)
          for (int x = 0; x < 8; x++)
            rows[y][x] += basis[y * 8 + k] * s[k][x];
      for (int y = 0; y < 8; y++)
        for (int k = 0; k < 8; k++)
          for (int x = 0; x < 8; x++)
            all[y][x] += rows[y][k] * basis[x * 8 + k];
      for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
          out[(by + y) * w + bx + x] = (int16_t)(all[y][x] / (1 + x + y));
    }
}

NATIVE(walsh) {
  int *data = job.array<int>(0), n = job.number(0);
  for (int stride = 1; stride < n; stride *= 2)
#pragma omp parallel for schedule(static)
    for (int block = 0; block < n / 2; block += 4096)
      // Half-pairs that lie in one block of 4096.
      for (int i = block; i < std::min(block + 4096, n / 2);) {
        int k = i % stride, at = i / stride * 2 * stride + k, run = std::min(stride - k, block + 4096 - i);
        run = std::min(run, n / 2 - i);
        int *a = data + at, *b = data + at + stride;
#pragma omp simd
        for (int j = 0; j < run; j++) {
          int x = a[j], y = b[j];
          a[j] = x + y;
          b[j] = x - y;
        }
        i += run;
      }
}

NATIVE(binomial) {
  const float *spots = job.array<float>(0), *strikes = job.array<float>(1);
  float *prices = job.array<float>(2);
  int options = job.arrays[0].bytes / 4, steps = job.number(0);
  float up = job.number<float>(1), probability = job.number<float>(2), discount = job.number<float>(3);
  // Factors of the price at all places of the tree.
  std::vector<float> factors(2 * steps + 1);
  for (int i = -steps; i <= steps; i++)
    factors[i + steps] = exp2f(up * i);
#pragma omp parallel for schedule(static)
  for (int o = 0; o < options; o++) {
    std::vector<float> values(steps + 1);
    float spot = spots[o], strike = strikes[o];
    for (int i = 0; i <= steps; i++)
      values[i] = std::max(strike - spot * factors[2 * i], 0.0f);
    for (int level = steps; level > 0; level--) {
      const float *factor = factors.data() + steps - level + 1;
      for (int i = 0; i < level; i++) {
        float hold = discount * (probability * values[i + 1] + (1.0f - probability) * values[i]);
        values[i] = std::max(hold, strike - spot * factor[2 * i]);
      }
    }
    prices[o] = values[0];
  }
}

NATIVE(aes) {
  const uint32_t *in = job.array<uint32_t>(0), *t0 = job.array<uint32_t>(2), *key = job.array<uint32_t>(4);
  const uint32_t *t1 = t0 + 256, *t2 = t1 + 256, *t3 = t2 + 256;
  const uint8_t *box = job.array<uint8_t>(3);
  uint32_t *out = job.array<uint32_t>(1);
  int n = job.number(0);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    const uint32_t *v = in + 4 * i;
    uint32_t a = v[0] ^ key[0], b = v[1] ^ key[1], c = v[2] ^ key[2], d = v[3] ^ key[3];
    for (int round = 1; round < 10; round++) {
      uint32_t e = t0[a & 255] ^ t1[b >> 8 & 255] ^ t2[c >> 16 & 255] ^ t3[d >> 24] ^ key[4 * round];
      uint32_t f = t0[b & 255] ^ t1[c >> 8 & 255] ^ t2[d >> 16 & 255] ^ t3[a >> 24] ^ key[4 * round + 1];
      uint32_t g = t0[c & 255] ^ t1[d >> 8 & 255] ^ t2[a >> 16 & 255] ^ t3[b >> 24] ^ key[4 * round + 2];
      uint32_t h = t0[d & 255] ^ t1[a >> 8 & 255] ^ t2[b >> 16 & 255] ^ t3[c >> 24] ^ key[4 * round + 3];
      a = e, b = f, c = g, d = h;
    }
    auto last = [&](uint32_t p, uint32_t q, uint32_t r, uint32_t s, uint32_t k) {
      return (box[p & 255] | box[q >> 8 & 255] << 8 | box[r >> 16 & 255] << 16 | (uint32_t)box[s >> 24] << 24) ^ k;
    };
    uint32_t *to = out + 4 * i;
    to[0] = last(a, b, c, d, key[40]), to[1] = last(b, c, d, a, key[41]);
    to[2] = last(c, d, a, b, key[42]), to[3] = last(d, a, b, c, key[43]);
  }
}

NATIVE(crc32) {
  const uint8_t *messages = job.array<uint8_t>(0);
  const uint32_t *table = job.array<uint32_t>(1);
  uint32_t *out = job.array<uint32_t>(2);
  int n = job.number(0), length = job.number(1);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    uint32_t crc = 0xffffffffu;
    for (int k = 0; k < length; k++)
      crc = table[(crc ^ messages[i * length + k]) & 255] ^ crc >> 8;
    out[i] = ~crc;
  }
}

static inline uint32_t rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

NATIVE(hash16) {
  const uint32_t *__restrict keys = job.array<uint32_t>(0);
  uint32_t *__restrict out = job.array<uint32_t>(1);
  int n = job.number(0);
  uint32_t seed = job.number<uint32_t>(1);
#pragma omp parallel for simd schedule(static)
  for (int i = 0; i < n; i++) {
    uint32_t h = seed;
    for (int k = 0; k < 4; k++) {
      h ^= rotate(keys[4 * i + k] * 0xcc9e2d51u, 15) * 0x1b873593u;
      h = rotate(h, 13) * 5 + 0xe6546b64u;
    }
    h ^= 16;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    out[i] = h ^ h >> 16;
  }
}

NATIVE(base64) {
  const uint8_t *__restrict in = job.array<uint8_t>(0), *__restrict letters = job.array<uint8_t>(2);
  uint8_t *__restrict out = job.array<uint8_t>(1);
  int n = job.number(0);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    uint32_t v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
    out[4 * i] = letters[v >> 18];
    out[4 * i + 1] = letters[v >> 12 & 63];
    out[4 * i + 2] = letters[v >> 6 & 63];
    out[4 * i + 3] = letters[v & 63];
  }
}

// Sixteen blocks at once, a lane for each.
NATIVE(chacha) {
  const uint32_t *__restrict text = job.array<uint32_t>(0), *__restrict key = job.array<uint32_t>(2);
  uint32_t *__restrict out = job.array<uint32_t>(1);
  int n = job.number(0);
#pragma omp parallel for schedule(static)
  for (int base = 0; base < n; base += 16) {
    u32x16 start[16], x[16], lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint32_t words[4] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    for (int k = 0; k < 16; k++)
      start[k] = u32x16{} + (k < 4 ? words[k] : k < 12 ? key[k - 4] : 0x01234567u);
    start[12] = lane + (uint32_t)base;
    std::copy(start, start + 16, x);
    auto quarter = [&](int a, int b, int c, int d) {
      x[a] += x[b], x[d] ^= x[a], x[d] = x[d] << 16 | x[d] >> 16;
      x[c] += x[d], x[b] ^= x[c], x[b] = x[b] << 12 | x[b] >> 20;
      x[a] += x[b], x[d] ^= x[a], x[d] = x[d] << 8 | x[d] >> 24;
      x[c] += x[d], x[b] ^= x[c], x[b] = x[b] << 7 | x[b] >> 25;
    };
    for (int round = 0; round < 10; round++) {
      quarter(0, 4, 8, 12), quarter(1, 5, 9, 13), quarter(2, 6, 10, 14), quarter(3, 7, 11, 15);
      quarter(0, 5, 10, 15), quarter(1, 6, 11, 12), quarter(2, 7, 8, 13), quarter(3, 4, 9, 14);
    }
    for (int i = 0; i < std::min(16, n - base); i++)
      for (int k = 0; k < 16; k++)
        out[(base + i) * 16 + k] = text[(base + i) * 16 + k] ^ (x[k][i] + start[k][i]);
  }
}

// Eight queries at once, a lane for each.
NATIVE(hamming) {
  const uint64_t *queries = job.array<uint64_t>(0), *words = job.array<uint64_t>(1);
  int *nearest = job.array<int>(2), n = job.number(0), m = job.number(1);
#pragma omp parallel for schedule(static)
  for (int base = 0; base < n; base += 8) {
    int count = std::min(8, n - base);
    uint64_t low[8] = {}, high[8] = {}, best[8], at[8] = {};
    for (int j = 0; j < count; j++) {
      low[j] = queries[2 * (base + j)];
      high[j] = queries[2 * (base + j) + 1];
    }
    std::fill(best, best + 8, 1 << 20);
    for (int i = 0; i < m; i++) {
      uint64_t a = words[2 * i], b = words[2 * i + 1];
#pragma omp simd
      for (int j = 0; j < 8; j++) {
        uint64_t d = __builtin_popcountll(low[j] ^ a) + __builtin_popcountll(high[j] ^ b);
        at[j] = d < best[j] ? i : at[j];
        best[j] = std::min(best[j], d);
      }
    }
    for (int j = 0; j < count; j++)
      nearest[base + j] = at[j];
  }
}
