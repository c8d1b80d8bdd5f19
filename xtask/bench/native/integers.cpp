// Integer work in which each element is on its own: 16 at once.
#include "job.h"

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline u32x16 rotr(u32x16 x, int n) { return x >> n | x << (32 - n); }

static inline void compress(u32x16 *h, u32x16 *w) {
  u32x16 a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], k = h[7];
#pragma GCC unroll 64
  for (int i = 0; i < 64; i++) {
    if (i >= 16) {
      u32x16 w15 = w[(i + 1) & 15], w2 = w[(i + 14) & 15];
      u32x16 s0 = rotr(w15, 7) ^ rotr(w15, 18) ^ (w15 >> 3), s1 = rotr(w2, 17) ^ rotr(w2, 19) ^ (w2 >> 10);
      w[i & 15] += s0 + w[(i + 9) & 15] + s1;
    }
    u32x16 t1 = k + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i & 15];
    u32x16 t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    k = g; g = f; f = e; e = d + t1; d = c; c = b; b = a; a = t1 + t2;
  }
  h[0] += a; h[1] += b; h[2] += c; h[3] += d; h[4] += e; h[5] += f; h[6] += g; h[7] += k;
}

static void sha256(Job &job) {
  int n = job.number(0);
  const uint32_t *messages = job.array<uint32_t>(0);
  uint32_t *digests = job.array<uint32_t>(1);
  static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i += 16) {
    u32x16 h[8], w[16];
    for (int j = 0; j < 8; j++)
      h[j] = u32x16{} + START[j];
    for (int j = 0; j < 16; j++)
      for (int m = 0; m < 16; m++)
        w[j][m] = __builtin_bswap32(messages[(size_t)(i + m) * 16 + j]);
    compress(h, w);
    for (int j = 0; j < 16; j++)
      w[j] = u32x16{} + (j == 0 ? 0x80000000u : j == 15 ? 512u : 0u);
    compress(h, w);
    for (int m = 0; m < 16; m++)
      for (int j = 0; j < 8; j++)
        digests[(size_t)(i + m) * 8 + j] = __builtin_bswap32(h[j][m]);
  }
}

// Two vectors of generators, as one alone would wait for itself.
static void monte_carlo(Job &job) {
  int threads = job.number(0), each = job.number(1);
  uint32_t *hits = job.array<uint32_t>(0);
  uint32_t total = 0;
  u32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#pragma omp parallel for schedule(static) reduction(+ : total)
  for (int t = 0; t < threads; t += 64) {
    u32x16 s[4];
    s32x16 inside[4] = {};
    for (int v = 0; v < 4; v++)
      s[v] = (lane + (uint32_t)(t + 16 * v + 1)) * 2654435761u;
    for (int i = 0; i < each; i++)
#pragma GCC unroll 4
      for (int v = 0; v < 4; v++) {
        f32x16 at[2];
        for (int c = 0; c < 2; c++) {
          s[v] ^= s[v] << 13;
          s[v] ^= s[v] >> 17;
          s[v] ^= s[v] << 5;
          at[c] = __builtin_convertvector((s32x16)(s[v] >> 8), f32x16) * (1.0f / 16777216.0f);
        }
        inside[v] -= at[0] * at[0] + at[1] * at[1] < 1.0f;
      }
    for (int v = 0; v < 4; v++)
      for (int j = 0; j < 16; j++)
        total += inside[v][j];
  }
  hits[0] += total;
}

std::vector<Entry> integers() { return {{"sha256", {sha256}}, {"monte_carlo", {monte_carlo}}}; }
