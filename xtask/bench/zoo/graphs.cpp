// Graphs and hash tables, as one writes them for a CPU.
#include "job.h"
#include <algorithm>

NATIVE(bfs) {
  const int *begins = job.array<int>(0), *targets = job.array<int>(1);
  int *levels = job.array<int>(2), *queue = job.array<int>(3), *sizes = job.array<int>(4);
  int vertices = job.number(0), depth = job.number(1);
  for (int level = 0; level < depth; level++) {
    const int *frontier = queue + level % 2 * vertices;
    int *next = queue + (level + 1) % 2 * vertices, size = sizes[level];
#pragma omp parallel for schedule(dynamic, 256)
    for (int t = 0; t < size; t++)
      for (int e = begins[frontier[t]]; e < begins[frontier[t] + 1]; e++) {
        int to = targets[e], unseen = -1;
        if (levels[to] < 0 && __atomic_compare_exchange_n(&levels[to], &unseen, level + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
          next[__atomic_fetch_add(&sizes[level + 1], 1, __ATOMIC_RELAXED)] = to;
      }
  }
}

NATIVE(pagerank) {
  const int *begins = job.array<int>(0), *sources = job.array<int>(1), *degrees = job.array<int>(3);
  float *share = job.array<float>(2), *rank = job.array<float>(4), *next = job.array<float>(5);
  int vertices = job.number(0), steps = job.number(2);
  float damping = job.number<float>(1);
  for (int step = 0; step < steps; step++, std::swap(share, next)) {
#pragma omp parallel for schedule(static)
    for (int v = 0; v < vertices; v++) {
      float sum = 0.0f;
      for (int e = begins[v]; e < begins[v + 1]; e++)
        sum += share[sources[e]];
      float r = (1.0f - damping) / vertices + damping * sum;
      rank[v] = r;
      next[v] = r / std::max(degrees[v], 1);
    }
  }
}

static void lower(int *place, int value) {
  int old = *place;
  while (value < old && !__atomic_compare_exchange_n(place, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

NATIVE(sssp) {
  const int *from = job.array<int>(0), *to = job.array<int>(1), *weights = job.array<int>(2);
  int *distances = job.array<int>(3), edges = job.number(0), steps = job.number(1);
  for (int step = 0; step < steps; step++)
#pragma omp parallel for schedule(static)
    for (int e = 0; e < edges; e++) {
      int d = distances[from[e]];
      if (d < 0x3fffffff && d + weights[e] < distances[to[e]])
        lower(&distances[to[e]], d + weights[e]);
    }
}

// Union and find, where roots are the smallest.
NATIVE(components) {
  const int *from = job.array<int>(0), *to = job.array<int>(1);
  int *labels = job.array<int>(2), edges = job.number(0), vertices = job.number(1);
  auto root = [=](int v) {
    while (labels[v] != v)
      v = labels[v] = labels[labels[v]];
    return v;
  };
  for (int e = 0; e < edges; e++) {
    int a = root(from[e]), b = root(to[e]);
    if (a != b)
      labels[std::max(a, b)] = std::min(a, b);
  }
  for (int v = 0; v < vertices; v++)
    labels[v] = root(v);
}

NATIVE(triangles) {
  const int *begins = job.array<int>(0), *targets = job.array<int>(1), *from = job.array<int>(2), *to = job.array<int>(3);
  int edges = job.number(0);
  uint32_t total = 0;
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : total)
  for (int e = 0; e < edges; e++) {
    int i = begins[from[e]], i_end = begins[from[e] + 1], j = begins[to[e]], j_end = begins[to[e] + 1];
    while (i < i_end && j < j_end) {
      int a = targets[i], b = targets[j];
      total += a == b;
      i += a <= b;
      j += b <= a;
    }
  }
  *job.array<uint32_t>(4) = total;
}

static uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

NATIVE(hash_table) {
  const uint32_t *keys = job.array<uint32_t>(0), *wanted = job.array<uint32_t>(2);
  const int *values = job.array<int>(1);
  uint32_t *slots = job.array<uint32_t>(3);
  int *sums = job.array<int>(4), *out = job.array<int>(5);
  int n = job.number(0);
  uint32_t mask = job.number<uint32_t>(1);
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++) {
      uint32_t key = keys[i];
      for (uint32_t at = mix(key) & mask;; at = (at + 1) & mask) {
        uint32_t old = 0;
        if (__atomic_compare_exchange_n(&slots[at], &old, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || old == key) {
          __atomic_fetch_add(&sums[at], values[i], __ATOMIC_RELAXED);
          break;
        }
      }
    }
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++) {
      uint32_t key = wanted[i], at = mix(key) & mask;
      int found = 0;
      for (; slots[at] != 0; at = (at + 1) & mask)
        if (slots[at] == key) {
          found = sums[at];
          break;
        }
      out[i] = found;
    }
  }
}

NATIVE(histogram2d) {
  const uint16_t *xs = job.array<uint16_t>(0), *ys = job.array<uint16_t>(1);
  uint32_t *bins = job.array<uint32_t>(2);
  int n = job.number(0), side = job.number(1);
#pragma omp parallel
  {
    std::vector<uint32_t> local(side * side);
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++)
      local[ys[i] % side * side + xs[i] % side]++;
#pragma omp critical
    for (int b = 0; b < side * side; b++)
      bins[b] += local[b];
  }
}
