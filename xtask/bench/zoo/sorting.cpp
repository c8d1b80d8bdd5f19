// Sorting, merging and searching, as one writes them for a CPU.
#include "job.h"
#include <algorithm>
#include <omp.h>

// Radix sort by bytes: each thread counts its share, then places it.
NATIVE(radix_sort) {
  uint32_t *from = job.array<uint32_t>(0), *to = job.array<uint32_t>(1);
  int n = job.number(0);
  std::vector<uint32_t> counts(256 * omp_get_max_threads());
#pragma omp parallel
  {
    int threads = omp_get_num_threads(), t = omp_get_thread_num();
    int begin = (int64_t)n * t / threads, end = (int64_t)n * (t + 1) / threads;
    const uint32_t *in = from;
    uint32_t *out = to;
    for (int shift = 0; shift < 32; shift += 8) {
      uint32_t local[256] = {};
      for (int i = begin; i < end; i++)
        local[in[i] >> shift & 255]++;
      for (int d = 0; d < 256; d++)
        counts[d * threads + t] = local[d];
#pragma omp barrier
#pragma omp single
      {
        uint32_t sum = 0;
        for (int i = 0; i < 256 * threads; i++) {
          uint32_t count = counts[i];
          counts[i] = sum;
          sum += count;
        }
      }
      for (int d = 0; d < 256; d++)
        local[d] = counts[d * threads + t];
      for (int i = begin; i < end; i++)
        out[local[in[i] >> shift & 255]++] = in[i];
#pragma omp barrier
      const uint32_t *sorted = out;
      out = (uint32_t *)in;
      in = sorted;
    }
  }
}

NATIVE(merge) {
  const int *a = job.array<int>(0), *b = job.array<int>(1);
  int *out = job.array<int>(2);
  int na = job.number(0), nb = job.number(1);
#pragma omp parallel
  {
    int threads = omp_get_num_threads(), t = omp_get_thread_num();
    auto split = [&](int at) {
      int low = std::max(0, at - nb), high = std::min(at, na);
      while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= b[at - 1 - middle])
          low = middle + 1;
        else
          high = middle;
      }
      return low;
    };
    int begin = (int64_t)(na + nb) * t / threads, end = (int64_t)(na + nb) * (t + 1) / threads;
    int i = split(begin), i_end = split(end);
    std::merge(a + i, a + i_end, b + (begin - i), b + (end - i_end), out + begin);
  }
}

NATIVE(lower_bound) {
  const uint32_t *table = job.array<uint32_t>(0), *values = job.array<uint32_t>(1);
  int *out = job.array<int>(2);
  int size = job.number(0), n = job.number(1);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++)
    out[i] = std::lower_bound(table, table + size, values[i]) - table;
}

// Without branches that depend on the table.
NATIVE_WAY(lower_bound, branchless) {
  const uint32_t *table = job.array<uint32_t>(0), *values = job.array<uint32_t>(1);
  int *out = job.array<int>(2);
  int size = job.number(0), n = job.number(1);
#pragma omp parallel for schedule(static)
  for (int base = 0; base < n; base += 16) {
    // Sixteen searches side by side.
    int at[16] = {}, count = std::min(16, n - base);
    for (int length = size; length > 0;) {
      int half = length - length / 2;
#pragma omp simd
      for (int j = 0; j < count; j++)
        at[j] += at[j] + half <= size && table[at[j] + half - 1] < values[base + j] ? half : 0;
      length = length == 1 ? 0 : half;
    }
    std::copy(at, at + count, out + base);
  }
}

NATIVE(rank_sort) {
  const float *keys = job.array<float>(0);
  const int *values = job.array<int>(1);
  float *sorted = job.array<float>(2);
  int *order = job.array<int>(3), tiles = job.arrays[0].bytes / 2048;
#pragma omp parallel for schedule(static)
  for (int tile = 0; tile < tiles; tile++) {
    std::pair<float, int> pairs[512];
    for (int i = 0; i < 512; i++)
      pairs[i] = {keys[tile * 512 + i], i};
    std::sort(pairs, pairs + 512);
    for (int i = 0; i < 512; i++) {
      sorted[tile * 512 + i] = pairs[i].first;
      order[tile * 512 + i] = values[tile * 512 + pairs[i].second];
    }
  }
}

NATIVE(top4) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int rows = job.number(0), n = job.number(1);
#pragma omp parallel for schedule(static)
  for (int base = 0; base < rows; base += 64) {
    int count = std::min(64, rows - base);
    float best[4][64];
    std::fill(&best[0][0], &best[0][0] + 256, -1e30f);
    for (int i = 0; i < n; i++)
#pragma omp simd
      for (int r = 0; r < count; r++) {
        float v = in[i * rows + base + r];
        for (int k = 0; k < 4; k++) {
          float higher = v > best[k][r] ? v : best[k][r], lower = v > best[k][r] ? best[k][r] : v;
          best[k][r] = higher;
          v = lower;
        }
      }
    for (int k = 0; k < 4; k++)
      std::copy(best[k], best[k] + count, out + k * rows + base);
  }
}
