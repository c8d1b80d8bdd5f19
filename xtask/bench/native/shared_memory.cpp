// What a GPU does with shared memory: histograms and sorting in tiles.
#include "job.h"
#include <algorithm>

// A copy of the bins for each thread, as one writes it. (Several copies for each thread would serve equal neighbours better.)
static void histogram(Job &job) {
  int n = job.number(0);
  const uint8_t *data = job.array<uint8_t>(0);
  uint32_t *bins = job.array<uint32_t>(1);
#pragma omp parallel
  {
    uint32_t local[256] = {};
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++)
      local[data[i]]++;
#pragma omp critical
    for (int b = 0; b < 256; b++)
      bins[b] += local[b];
  }
}

static void sort_std(Job &job) {
  int tiles = job.number(0);
  uint32_t *keys = job.array<uint32_t>(0);
#pragma omp parallel for schedule(static)
  for (int t = 0; t < tiles; t++)
    std::sort(keys + 1024 * t, keys + 1024 * (t + 1));
}

template <int STRIDE> static inline void exchange(uint32_t *key, int size) {
  for (int base = 0; base < 1024; base += 2 * STRIDE) {
    bool up = (base & size) == 0;
#pragma omp simd
    for (int i = base; i < base + STRIDE; i++) {
      uint32_t low = std::min(key[i], key[i + STRIDE]), high = std::max(key[i], key[i + STRIDE]);
      key[i] = up ? low : high;
      key[i + STRIDE] = up ? high : low;
    }
  }
}

// Strides below 16 stay within a vector: exchange with a permuted copy.
template <int STRIDE> static inline void exchange_within(uint32_t *key, int size) {
  u32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (int base = 0; base < 1024; base += 16) {
    u32x16 v = *(u32x16 *)(key + base), other = __builtin_shuffle(v, lane ^ STRIDE);
    u32x16 low = v < other ? v : other, high = v < other ? other : v;
    u32x16 first = (u32x16)((lane & STRIDE) == 0), up = (u32x16)(((lane + base) & size) == 0);
    *(u32x16 *)(key + base) = first == up ? low : high;
  }
}

// The bitonic network, as one writes it for vectors.
static void sort_network(Job &job) {
  int tiles = job.number(0);
  uint32_t *keys = job.array<uint32_t>(0);
#pragma omp parallel for schedule(static)
  for (int t = 0; t < tiles; t++) {
    uint32_t *key = keys + 1024 * t;
    for (int size = 2; size <= 1024; size <<= 1) {
      switch (size >> 1) {
      case 512: exchange<512>(key, size); [[fallthrough]];
      case 256: exchange<256>(key, size); [[fallthrough]];
      case 128: exchange<128>(key, size); [[fallthrough]];
      case 64: exchange<64>(key, size); [[fallthrough]];
      case 32: exchange<32>(key, size); [[fallthrough]];
      case 16: exchange<16>(key, size); [[fallthrough]];
      case 8: exchange_within<8>(key, size); [[fallthrough]];
      case 4: exchange_within<4>(key, size); [[fallthrough]];
      case 2: exchange_within<2>(key, size); [[fallthrough]];
      default: exchange_within<1>(key, size);
      }
    }
  }
}

std::vector<Entry> shared_memory() {
  return {{"histogram", {histogram}}, {"sort", {sort_network, sort_std}}};
}
