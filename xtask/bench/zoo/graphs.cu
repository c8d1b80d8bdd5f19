// Graphs in compressed rows, and hash tables: atomics at places that data name.
#include "zoo.cuh"

// A level of breadth-first search: one thread for each vertex of the frontier, which the last level left in a queue.
KERNEL bfs(const int *begins, const int *targets, int *levels, int *queue, int *sizes, int level, int vertices) {
  int size = sizes[level];
  const int *frontier = queue + (level % 2) * vertices;
  int *next = queue + (level + 1) % 2 * vertices;
  for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < size; t += gridDim.x * blockDim.x) {
    int v = frontier[t];
    for (int e = begins[v]; e < begins[v + 1]; e++) {
      int to = targets[e];
      if (levels[to] < 0 && atomicCAS(&levels[to], -1, level + 1) == -1)
        next[atomicAdd(&sizes[level + 1], 1)] = to;
    }
  }
}

// A step of page rank: each page gathers from those that point to it.
KERNEL pagerank(const int *begins, const int *sources, const float *share, const int *degrees, float *rank, float *next_share,
                int vertices, float damping) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= vertices)
    return;
  float sum = 0.0f;
  for (int e = begins[v]; e < begins[v + 1]; e++)
    sum += share[sources[e]];
  float r = (1.0f - damping) / vertices + damping * sum;
  rank[v] = r;
  next_share[v] = r / max(degrees[v], 1);
}

// Shortest paths: each edge relaxes its target; as often as the graph is deep.
KERNEL sssp(const int *from, const int *to, const int *weights, int *distances, int edges) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges)
    return;
  int d = distances[from[e]];
  if (d < 0x3fffffff && d + weights[e] < distances[to[e]])
    atomicMin(&distances[to[e]], d + weights[e]);
}

// Connected components: the lower label wins along each edge, then labels jump to their roots.
KERNEL components_hook(const int *from, const int *to, int *labels, int edges) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges)
    return;
  int a = labels[from[e]], b = labels[to[e]];
  if (a < b)
    atomicMin(&labels[b], a);
  else if (b < a)
    atomicMin(&labels[a], b);
}
KERNEL components_jump(int *labels, int vertices) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= vertices)
    return;
  int label = labels[v];
  while (label != labels[label])
    label = labels[label];
  labels[v] = label;
}

// Triangles: for each edge, what the sorted lists of both ends have in common.
KERNEL triangles(const int *begins, const int *targets, const int *from, const int *to, unsigned *total, int edges) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges)
    return;
  int i = begins[from[e]], i_end = begins[from[e] + 1], j = begins[to[e]], j_end = begins[to[e] + 1];
  unsigned count = 0;
  while (i < i_end && j < j_end) {
    int a = targets[i], b = targets[j];
    count += a == b;
    i += a <= b;
    j += b <= a;
  }
  if (count)
    atomicAdd(total, count);
}

// A hash table with open addresses: keys are entered once, values of equal keys are added up.
__device__ __forceinline__ unsigned mix(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}
KERNEL hash_insert(const unsigned *keys, const int *values, unsigned *slots, int *sums, int n, unsigned mask) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned key = keys[i];
  for (unsigned at = mix(key) & mask;; at = (at + 1) & mask) {
    unsigned old = atomicCAS(&slots[at], 0u, key);
    if (old == 0 || old == key) {
      atomicAdd(&sums[at], values[i]);
      return;
    }
  }
}
KERNEL hash_find(const unsigned *keys, const unsigned *slots, const int *sums, int *out, int n, unsigned mask) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned key = keys[i], at = mix(key) & mask;
  int found = 0;
  for (unsigned slot; (slot = slots[at]) != 0; at = (at + 1) & mask)
    if (slot == key) {
      found = sums[at];
      break;
    }
  out[i] = found;
}

// A histogram of pairs in global memory.
KERNEL histogram2d(const uint16_t *xs, const uint16_t *ys, unsigned *bins, int n, int side) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&bins[ys[i] % side * side + xs[i] % side], 1u);
}
