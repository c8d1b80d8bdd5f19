// Sorting, merging and searching.
#include "zoo.cuh"

// One pass of radix sort over 4 bits: counts of each CTA's share by digit, their scan, then the stable places.
KERNEL radix_count(const unsigned *keys, unsigned *counts, int n, int shift) {
  __shared__ unsigned bins[16];
  if (threadIdx.x < 16)
    bins[threadIdx.x] = 0;
  __syncthreads();
  for (int j = 0; j < 4; j++) {
    int i = blockIdx.x * 1024 + j * 256 + threadIdx.x;
    if (i < n)
      atomicAdd(&bins[keys[i] >> shift & 15], 1u);
  }
  __syncthreads();
  if (threadIdx.x < 16)
    counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}
KERNEL radix_scan(unsigned *counts, int n) {
  __shared__ unsigned warps[8], carry;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0)
    carry = 0;
  __syncthreads();
  for (int base = 0; base < n; base += 256) {
    int i = base + threadIdx.x;
    unsigned v = i < n ? counts[i] : 0, sum = v;
    for (int d = 1; d < 32; d *= 2) {
      unsigned left = __shfl_up_sync(0xffffffffu, (int)sum, d);
      if (lane >= d)
        sum += left;
    }
    if (lane == 31)
      warps[warp] = sum;
    __syncthreads();
    unsigned before = carry;
    for (int w = 0; w < warp; w++)
      before += warps[w];
    if (i < n)
      counts[i] = before + sum - v;
    __syncthreads();
    if (threadIdx.x == 255)
      carry = before + sum;
    __syncthreads();
  }
}
KERNEL radix_place(const unsigned *keys, unsigned *sorted, const unsigned *counts, int n, int shift) {
  __shared__ unsigned begins[16], warps[8][16];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x < 16)
    begins[threadIdx.x] = counts[threadIdx.x * gridDim.x + blockIdx.x];
  for (int j = 0; j < 4; j++) {
    int i = blockIdx.x * 1024 + j * 256 + threadIdx.x;
    unsigned key = i < n ? keys[i] : 0, digit = i < n ? key >> shift & 15 : 16, same = 0xffffffffu;
    for (int bit = 0; bit < 5; bit++) {
      unsigned ballot = __ballot_sync(0xffffffffu, digit >> bit & 1);
      same &= digit >> bit & 1 ? ballot : ~ballot;
    }
    unsigned rank = __popc(same & ((1u << lane) - 1));
    if (threadIdx.x < 128)
      warps[threadIdx.x / 16][threadIdx.x % 16] = 0;
    __syncthreads();
    if (rank == 0 && digit < 16)
      warps[warp][digit] = __popc(same);
    __syncthreads();
    if (digit < 16) {
      unsigned place = begins[digit] + rank;
      for (int w = 0; w < warp; w++)
        place += warps[w][digit];
      sorted[place] = key;
    }
    __syncthreads();
    if (threadIdx.x < 16)
      for (int w = 0; w < 8; w++)
        begins[threadIdx.x] += warps[w][threadIdx.x];
    __syncthreads();
  }
}

// Two sorted lists into one: each thread finds where its 8 elements begin in both, then merges them.
KERNEL merge(const int *a, int na, const int *b, int nb, int *out) {
  int begin = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (begin >= na + nb)
    return;
  int low = max(0, begin - nb), high = min(begin, na);
  while (low < high) {
    int middle = (low + high) / 2;
    if (a[middle] <= b[begin - 1 - middle])
      low = middle + 1;
    else
      high = middle;
  }
  int i = low, j = begin - low, end = min(begin + 8, na + nb);
  for (int k = begin; k < end; k++) {
    bool from_a = j >= nb || (i < na && a[i] <= b[j]);
    out[k] = from_a ? a[i++] : b[j++];
  }
}

// Where each value would stand in a sorted table.
KERNEL lower_bound(const unsigned *table, const unsigned *values, int *out, int size, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n)
    return;
  unsigned value = values[t];
  int low = 0, high = size;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (table[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  out[t] = low;
}

// Sorts 512 keys with their values: each thread counts in shared memory how many are smaller.
KERNEL rank_sort(const float *keys, const int *values, float *sorted, int *order) {
  __shared__ float s[512];
  int base = blockIdx.x * 512, t = threadIdx.x;
  float key = keys[base + t];
  s[t] = key;
  __syncthreads();
  int rank = 0;
  for (int i = 0; i < 512; i++)
    rank += s[i] < key || (s[i] == key && i < t);
  sorted[base + rank] = key;
  order[base + rank] = values[base + t];
}

// The four largest of each row by insertion, one row for each thread; rows lie side by side.
KERNEL top4(const float *in, float *out, int rows, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows)
    return;
  float best[4] = {-1e30f, -1e30f, -1e30f, -1e30f};
  for (int i = 0; i < n; i++) {
    float v = in[i * rows + r];
    if (v > best[3]) {
      best[3] = v;
#pragma unroll
      for (int k = 3; k > 0; k--)
        if (best[k] > best[k - 1]) {
          float swap = best[k];
          best[k] = best[k - 1];
          best[k - 1] = swap;
        }
    }
  }
  for (int k = 0; k < 4; k++)
    out[k * rows + r] = best[k];
}
