// Transforms, ciphers, checksums and codes.
#include "zoo.cuh"

struct Complex {
  float re, im;
};
__device__ __forceinline__ Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
__device__ __forceinline__ Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
__device__ __forceinline__ Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// A Fourier transform of 1024 points for each CTA, in place in shared memory; roots of unity come from a table.
KERNEL fft1024(const float2 *in, float2 *out, const float2 *roots) {
  __shared__ Complex s[1024];
  int t = threadIdx.x;
  const float2 *from = in + blockIdx.x * 1024;
  for (int j = 0; j < 4; j++) {
    int i = t + 256 * j;
    unsigned reversed = __builtin_bitreverse32(i) >> 22;
    s[reversed] = {from[i].x, from[i].y};
  }
  __syncthreads();
  for (int half = 1; half < 1024; half *= 2) {
    for (int j = 0; j < 2; j++) {
      int b = t + 256 * j, k = b & (half - 1), at = 2 * b - k;
      float2 root = roots[k * (512 / half)];
      Complex x = s[at], y = s[at + half] * Complex{root.x, root.y};
      s[at] = x + y;
      s[at + half] = x - y;
    }
    __syncthreads();
  }
  for (int j = 0; j < 4; j++)
    out[blockIdx.x * 1024 + t + 256 * j] = {s[t + 256 * j].re, s[t + 256 * j].im};
}

// A cosine transform of 8x8 tiles with quantisation, 64 threads for a tile.
KERNEL dct8(const uint8_t *in, int16_t *out, const float *basis, int w) {
  __shared__ float s[8][8], rows[8][8], c[8][8];
  int x = threadIdx.x, y = threadIdx.y;
  c[y][x] = basis[y * 8 + x];
  int at = (blockIdx.y * 8 + y) * w + blockIdx.x * 8 + x;
  s[y][x] = in[at] - 128.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 8; k++)
    sum += c[x][k] * s[y][k];
  rows[y][x] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int k = 0; k < 8; k++)
    sum += c[y][k] * rows[k][x];
  out[at] = (int16_t)(sum / (1 + x + y));
}

// A Walsh transform over the whole array, one stage for each launch.
KERNEL walsh(int *data, int n, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 2)
    return;
  int at = i / stride * 2 * stride + i % stride;
  int a = data[at], b = data[at + stride];
  data[at] = a + b;
  data[at + stride] = a - b;
}

// Prices of American options by binomial trees: one CTA for each, the tree's level in shared memory.
KERNEL binomial(const float *spots, const float *strikes, float *prices, int steps, float up, float probability, float discount) {
  __shared__ float values[257];
  float spot = spots[blockIdx.x], strike = strikes[blockIdx.x];
  int t = threadIdx.x;
  for (int i = t; i <= steps; i += blockDim.x) {
    float price = spot * exp2_approx(up * (2 * i - steps));
    values[i] = fmaxf(strike - price, 0.0f);
  }
  __syncthreads();
  for (int level = steps; level > 0; level--) {
    float value = 0.0f;
    if (t < level) {
      float hold = discount * (probability * values[t + 1] + (1.0f - probability) * values[t]);
      value = fmaxf(hold, strike - spot * exp2_approx(up * (2 * t - level + 1)));
    }
    __syncthreads();
    if (t < level)
      values[t] = value;
    __syncthreads();
  }
  if (t == 0)
    prices[blockIdx.x] = values[0];
}

// AES with a key of 128 bits, one block of 16 bytes for each thread; the four tables of 256 words in shared memory.
KERNEL aes(const uint4 *in, uint4 *out, const unsigned *tables, const uint8_t *box, const unsigned *key, int n) {
  __shared__ unsigned t0[256], t1[256], t2[256], t3[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) {
    t0[i] = tables[i];
    t1[i] = tables[256 + i];
    t2[i] = tables[512 + i];
    t3[i] = tables[768 + i];
  }
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint4 v = in[i];
  unsigned a = v.x ^ key[0], b = v.y ^ key[1], c = v.z ^ key[2], d = v.w ^ key[3];
  for (int round = 1; round < 10; round++) {
    unsigned e = t0[a & 255] ^ t1[b >> 8 & 255] ^ t2[c >> 16 & 255] ^ t3[d >> 24] ^ key[4 * round];
    unsigned f = t0[b & 255] ^ t1[c >> 8 & 255] ^ t2[d >> 16 & 255] ^ t3[a >> 24] ^ key[4 * round + 1];
    unsigned g = t0[c & 255] ^ t1[d >> 8 & 255] ^ t2[a >> 16 & 255] ^ t3[b >> 24] ^ key[4 * round + 2];
    unsigned h = t0[d & 255] ^ t1[a >> 8 & 255] ^ t2[b >> 16 & 255] ^ t3[c >> 24] ^ key[4 * round + 3];
    a = e;
    b = f;
    c = g;
    d = h;
  }
  auto last = [&](unsigned p, unsigned q, unsigned r, unsigned s, unsigned k) {
    return (box[p & 255] | box[q >> 8 & 255] << 8 | box[r >> 16 & 255] << 16 | (unsigned)box[s >> 24] << 24) ^ k;
  };
  out[i] = {last(a, b, c, d, key[40]), last(b, c, d, a, key[41]), last(c, d, a, b, key[42]), last(d, a, b, c, key[43])};
}

// Checksums of messages of a fixed length, byte for byte from a table; bytes lie one behind the other.
KERNEL crc32(const uint8_t *messages, const unsigned *table, unsigned *out, int n, int length) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const uint8_t *message = messages + i * length;
  unsigned crc = 0xffffffffu;
  for (int k = 0; k < length; k++)
    crc = table[(crc ^ message[k]) & 255] ^ crc >> 8;
  out[i] = ~crc;
}

// MurmurHash3-like hashes of keys of 16 bytes.
__device__ __forceinline__ unsigned rotate(unsigned x, int by) { return x << by | x >> (32 - by); }
KERNEL hash16(const uint4 *keys, unsigned *out, int n, unsigned seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint4 key = keys[i];
  unsigned words[4] = {key.x, key.y, key.z, key.w}, h = seed;
  for (int k = 0; k < 4; k++) {
    h ^= rotate(words[k] * 0xcc9e2d51u, 15) * 0x1b873593u;
    h = rotate(h, 13) * 5 + 0xe6546b64u;
  }
  h ^= 16;
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  out[i] = h ^ h >> 16;
}

// Three bytes to four letters.
KERNEL base64(const uint8_t *in, uchar4 *out, const uint8_t *letters, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
  out[i] = {letters[v >> 18], letters[v >> 12 & 63], letters[v >> 6 & 63], letters[v & 63]};
}

// ChaCha20: a block of the key stream for each thread, added to the text.
KERNEL chacha(const unsigned *text, unsigned *out, const unsigned *key, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned start[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u}, x[16];
  for (int k = 0; k < 8; k++)
    start[4 + k] = key[k];
  start[12] = i;
  start[13] = start[14] = start[15] = 0x01234567u;
  for (int k = 0; k < 16; k++)
    x[k] = start[k];
  auto quarter = [&](int a, int b, int c, int d) {
    x[a] += x[b];
    x[d] = rotate(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = rotate(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = rotate(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = rotate(x[b] ^ x[c], 7);
  };
  for (int round = 0; round < 10; round++) {
    quarter(0, 4, 8, 12);
    quarter(1, 5, 9, 13);
    quarter(2, 6, 10, 14);
    quarter(3, 7, 11, 15);
    quarter(0, 5, 10, 15);
    quarter(1, 6, 11, 12);
    quarter(2, 7, 8, 13);
    quarter(3, 4, 9, 14);
  }
  for (int k = 0; k < 16; k++)
    out[i * 16 + k] = text[i * 16 + k] ^ (x[k] + start[k]);
}

// The nearest code word of 128 bits for each query, by bits that differ.
KERNEL hamming(const uint4 *queries, const uint4 *words, int *nearest, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint4 q = queries[i];
  int best = 1 << 20, at = 0;
  for (int j = 0; j < m; j++) {
    uint4 w = words[j];
    int d = __popc(q.x ^ w.x) + __popc(q.y ^ w.y) + __popc(q.z ^ w.z) + __popc(q.w ^ w.w);
    if (d < best) {
      best = d;
      at = j;
    }
  }
  nearest[i] = at;
}
