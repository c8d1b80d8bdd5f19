// Reductions of every kind, scans, segments.
#include "zoo.cuh"

__device__ __forceinline__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2)
    v += __shfl_down_sync(0xffffffffu, v, d);
  return v;
}

// A product of two vectors: a grid-stride loop, a tree in shared memory, one partial sum for each CTA, then one CTA.
KERNEL dot(const float *a, const float *b, float *partial, int n) {
  __shared__ float tree[256];
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += a[i] * b[i];
  tree[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      tree[threadIdx.x] += tree[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    partial[blockIdx.x] = tree[0];
}
KERNEL dot_end(const float *partial, float *out, int n) {
  __shared__ float tree[256];
  tree[threadIdx.x] = threadIdx.x < n ? partial[threadIdx.x] : 0.0f;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      tree[threadIdx.x] += tree[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    *out = tree[0];
}

// The largest element and where it is first, as one number of 64 bits.
KERNEL arg_max(const unsigned *in, uint64_t *out, int n) {
  uint64_t best = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    uint64_t candidate = (uint64_t)in[i] << 32 | (unsigned)(n - i);
    best = candidate > best ? candidate : best;
  }
  for (int d = 16; d > 0; d /= 2) {
    unsigned high = __shfl_xor_sync(0xffffffffu, (int)(best >> 32), d), low = __shfl_xor_sync(0xffffffffu, (int)best, d);
    uint64_t other = (uint64_t)high << 32 | low;
    best = other > best ? other : best;
  }
  if (threadIdx.x % 32 == 0)
    atomicMax(out, best);
}

// Mean and variance in double precision.
KERNEL moments(const float *in, double *out, int n) {
  __shared__ double sums[8], squares[8];
  double sum = 0.0, square = 0.0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double v = in[i];
    sum += v;
    square += v * v;
  }
  for (int d = 16; d > 0; d /= 2) {
    int2 a = __builtin_bit_cast(int2, sum), b = __builtin_bit_cast(int2, square);
    a.x = __shfl_xor_sync(0xffffffffu, a.x, d);
    a.y = __shfl_xor_sync(0xffffffffu, a.y, d);
    b.x = __shfl_xor_sync(0xffffffffu, b.x, d);
    b.y = __shfl_xor_sync(0xffffffffu, b.y, d);
    sum += __builtin_bit_cast(double, a);
    square += __builtin_bit_cast(double, b);
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = sum;
    squares[threadIdx.x / 32] = square;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; w++) {
      sum += sums[w];
      square += squares[w];
    }
    atomicAdd(&out[0], sum);
    atomicAdd(&out[1], square);
  }
}

// A sum for each row, by one CTA.
KERNEL row_sums(const float *in, float *out, int columns) {
  __shared__ float parts[4];
  const float *row = in + blockIdx.x * columns;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    sum += row[i];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    out[blockIdx.x] = parts[0] + parts[1] + parts[2] + parts[3];
}

// A largest value for each column, by one thread.
KERNEL column_max(const float *in, float *out, int rows, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns)
    return;
  float top = in[c];
  for (int r = 1; r < rows; r++)
    top = fmaxf(top, in[r * columns + c]);
  out[c] = top;
}

// Smallest, largest and sum of whole numbers, each thread by atomics.
KERNEL atomic_sums(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int v = in[i];
  atomicMin(&out[0], v);
  atomicMax(&out[1], v);
  atomicAdd(&out[2], v);
}

// How many elements of each CTA's share pass a test.
KERNEL count_if(const float *in, int *out, int n, float low, float high) {
  int total = 0;
  for (int base = blockIdx.x * blockDim.x * 16; base < (int)(blockIdx.x + 1) * (int)blockDim.x * 16; base += blockDim.x) {
    int i = base + threadIdx.x;
    total += __syncthreads_count(i < n && in[i] > low && in[i] < high);
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = total;
}

// An inclusive scan in one pass: a CTA looks back at the sums of those before it until one has a sum of all before.
KERNEL look_back(const unsigned *in, unsigned *out, uint64_t *states, unsigned *ticket, int n) {
  __shared__ unsigned warps[8], before, tile;
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  if (t == 0)
    tile = atomicAdd(ticket, 1u);
  __syncthreads();
  int base = tile * 1024 + t * 4;
  unsigned v[4];
  for (int j = 0; j < 4; j++) {
    v[j] = base + j < n ? in[base + j] : 0;
    if (j > 0)
      v[j] += v[j - 1];
  }
  unsigned sum = v[3];
  for (int d = 1; d < 32; d *= 2) {
    unsigned left = __shfl_up_sync(0xffffffffu, (int)sum, d);
    if (lane >= d)
      sum += left;
  }
  if (lane == 31)
    warps[warp] = sum;
  __syncthreads();
  unsigned offset = sum - v[3], all = 0;
  for (int w = 0; w < 8; w++) {
    if (w < warp)
      offset += warps[w];
    all += warps[w];
  }
  if (t == 0) {
    // The upper half of a state: 1 its own sum, 2 the sum of all up to it.
    unsigned carry = 0;
    if (tile > 0) {
      atomicExch(&states[tile], (uint64_t)1 << 32 | all);
      for (int back = (int)tile - 1; back >= 0;) {
        uint64_t state = *(volatile uint64_t *)&states[back];
        if (state >> 32 == 0)
          continue;
        carry += (unsigned)state;
        if (state >> 32 == 2)
          break;
        back--;
      }
    }
    atomicExch(&states[tile], (uint64_t)2 << 32 | (carry + all));
    before = carry;
  }
  __syncthreads();
  offset += before;
  for (int j = 0; j < 4; j++)
    if (base + j < n)
      out[base + j] = v[j] + offset;
}

// Sums of segments that begin where a flag is set, within warps; segments of several warps meet by atomics.
KERNEL segmented_sums(const int *in, const int *segment, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  int key = i < n ? segment[i] : -1, v = i < n ? in[i] : 0;
  for (int d = 1; d < 32; d *= 2) {
    int other = __shfl_up_sync(0xffffffffu, v, d), other_key = __shfl_up_sync(0xffffffffu, key, d);
    if (lane >= d && other_key == key)
      v += other;
  }
  int next = __shfl_down_sync(0xffffffffu, key, 1);
  if (i < n && (lane == 31 || next != key))
    atomicAdd(&out[key], v);
}

// What passes a test, in order: counts of CTAs, their scan by one CTA, then the places by ballots.
KERNEL compact_count(const int *in, int *counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int count = __syncthreads_count(i < n && in[i] % 3 == 0);
  if (threadIdx.x == 0)
    counts[blockIdx.x] = count;
}
KERNEL compact_scan(int *counts, int n) {
  __shared__ int s[256];
  int carry = 0;
  for (int base = 0; base < n; base += 256) {
    int v = base + threadIdx.x < n ? counts[base + threadIdx.x] : 0;
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
      int left = threadIdx.x >= d ? s[threadIdx.x - d] : 0;
      __syncthreads();
      s[threadIdx.x] += left;
      __syncthreads();
    }
    if (base + threadIdx.x < n)
      counts[base + threadIdx.x] = carry + s[threadIdx.x] - v;
    carry += s[255];
    __syncthreads();
  }
}
KERNEL compact_place(const int *in, const int *counts, int *out, int n) {
  __shared__ int warps[8];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  bool passes = i < n && in[i] % 3 == 0;
  unsigned ballot = __ballot_sync(0xffffffffu, passes);
  if (lane == 0)
    warps[warp] = __popc(ballot);
  __syncthreads();
  int place = counts[blockIdx.x] + __popc(ballot & ((1u << lane) - 1));
  for (int w = 0; w < warp; w++)
    place += warps[w];
  if (passes)
    out[place] = in[i];
}

// A norm of differences, four elements at a time.
KERNEL distance(const float4 *a, const float4 *b, float *out, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 x = a[i], y = b[i];
    float dx = x.x - y.x, dy = x.y - y.y, dz = x.z - y.z, dw = x.w - y.w;
    sum += dx * dx + dy * dy + dz * dz + dw * dw;
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0)
    atomicAdd(out, sum);
}
