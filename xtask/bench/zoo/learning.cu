// Machine learning: layers, losses, optimisers, clustering.
#include "zoo.cuh"

// The nearest of k centres for each point of `dims` coordinates, and sums for the next centres.
KERNEL kmeans(const float *points, const float *centres, int *labels, float *sums, int *counts, int n, int k, int dims) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float best = 1e30f;
  int label = 0;
  for (int c = 0; c < k; c++) {
    float d = 0.0f;
    for (int j = 0; j < dims; j++) {
      float v = points[j * n + i] - centres[c * dims + j];
      d += v * v;
    }
    if (d < best) {
      best = d;
      label = c;
    }
  }
  labels[i] = label;
  for (int j = 0; j < dims; j++)
    atomicAdd(&sums[label * dims + j], points[j * n + i]);
  atomicAdd(&counts[label], 1);
}

// The elementwise part of a cell of long short-term memory: four gates to a new cell and a new state.
KERNEL lstm_cell(const float *gates, const float *bias, const float *cell, float *next_cell, float *state, int hidden, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int row = i / hidden, column = i % hidden;
  const float *gate = gates + row * 4 * hidden + column;
  float in = sigmoid(gate[0] + bias[column]), forget = sigmoid(gate[hidden] + bias[hidden + column]);
  float fresh = tanh_fast(gate[2 * hidden] + bias[2 * hidden + column]);
  float out = sigmoid(gate[3 * hidden] + bias[3 * hidden + column]);
  float c = forget * cell[i] + in * fresh;
  next_cell[i] = c;
  state[i] = out * tanh_fast(c);
}

// Layer normalisation of rows, one warp for each.
KERNEL layer_norm(const float *in, const float *gain, const float *bias, float *out, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  const float *from = in + row * columns;
  float sum = 0.0f, squares = 0.0f;
  for (int i = lane; i < columns; i += 32) {
    sum += from[i];
    squares += from[i] * from[i];
  }
  for (int d = 16; d > 0; d /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, d);
    squares += __shfl_xor_sync(0xffffffffu, squares, d);
  }
  float mean = sum / columns, scale = rsqrtf(squares / columns - mean * mean + 1e-5f);
  for (int i = lane; i < columns; i += 32)
    out[row * columns + i] = (from[i] - mean) * scale * gain[i] + bias[i];
}

// Attention with one pass over keys: a warp for each query of 64 coordinates, the softmax kept up as it goes.
KERNEL attention(const float *queries, const float *keys, const float *values, float *out, int n, int m, float scale) {
  int query = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (query >= n)
    return;
  float q0 = queries[query * 64 + lane] * scale, q1 = queries[query * 64 + 32 + lane] * scale;
  float top = -1e30f, total = 0.0f, o0 = 0.0f, o1 = 0.0f;
  for (int j = 0; j < m; j++) {
    float s = q0 * keys[j * 64 + lane] + q1 * keys[j * 64 + 32 + lane];
    for (int d = 16; d > 0; d /= 2)
      s += __shfl_xor_sync(0xffffffffu, s, d);
    float higher = fmaxf(top, s), old = __expf(top - higher), weight = __expf(s - higher);
    total = total * old + weight;
    o0 = o0 * old + weight * values[j * 64 + lane];
    o1 = o1 * old + weight * values[j * 64 + 32 + lane];
    top = higher;
  }
  out[query * 64 + lane] = o0 / total;
  out[query * 64 + 32 + lane] = o1 / total;
}

// Attention in tiles: 64 queries for a CTA, one for each thread; keys and values in shared memory, 16 at a time.
KERNEL attention_tiled(const float *queries, const float *keys, const float *values, float *out, int m, float scale) {
  __shared__ float k[16][32], v[16][32];
  int query = blockIdx.x * 64 + threadIdx.x;
  float q[32], o[32] = {}, top = -1e30f, total = 0.0f;
  for (int d = 0; d < 32; d++)
    q[d] = queries[query * 32 + d] * scale;
  for (int base = 0; base < m; base += 16) {
    __syncthreads();
    for (int i = threadIdx.x; i < 16 * 32; i += 64) {
      k[i / 32][i % 32] = keys[base * 32 + i];
      v[i / 32][i % 32] = values[base * 32 + i];
    }
    __syncthreads();
    float s[16], higher = top;
#pragma unroll
    for (int j = 0; j < 16; j++) {
      s[j] = 0.0f;
      for (int d = 0; d < 32; d++)
        s[j] += q[d] * k[j][d];
      higher = fmaxf(higher, s[j]);
    }
    float old = __expf(top - higher);
    total *= old;
    for (int d = 0; d < 32; d++)
      o[d] *= old;
#pragma unroll
    for (int j = 0; j < 16; j++) {
      float weight = __expf(s[j] - higher);
      total += weight;
      for (int d = 0; d < 32; d++)
        o[d] += weight * v[j][d];
    }
    top = higher;
  }
  for (int d = 0; d < 32; d++)
    out[query * 32 + d] = o[d] / total;
}

// The Gaussian error linear unit by its approximation with tanh.
KERNEL gelu(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = in[i];
  out[i] = 0.5f * x * (1.0f + tanh_fast(0.79788456f * (x + 0.044715f * x * x * x)));
}

// Sums of rows of a table that indices name.
KERNEL embedding(const float *table, const int *indices, const int *begins, float *out, int width) {
  int bag = blockIdx.x, c = threadIdx.x;
  float sum = 0.0f;
  for (int i = begins[bag]; i < begins[bag + 1]; i++)
    sum += table[indices[i] * width + c];
  out[bag * width + c] = sum;
}

// A convolution of 3x3 over channels, images by planes; then bias and rectifier.
KERNEL conv_layer(const float *in, const float *weights, const float *bias, float *out, int channels, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, o = blockIdx.z;
  if (x >= w || y >= h)
    return;
  float sum = bias[o];
  for (int c = 0; c < channels; c++)
    for (int dy = -1; dy <= 1; dy++)
      for (int dx = -1; dx <= 1; dx++) {
        int sx = x + dx, sy = y + dy;
        if (sx >= 0 && sy >= 0 && sx < w && sy < h)
          sum += in[(c * h + sy) * w + sx] * weights[((o * channels + c) * 3 + dy + 1) * 3 + dx + 1];
      }
  out[(o * h + y) * w + x] = fmaxf(sum, 0.0f);
}

// The largest of 2x2 elements of planes.
KERNEL max_pool(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.z;
  if (x >= w || y >= h)
    return;
  const float *from = in + c * 4 * w * h + 2 * y * 2 * w + 2 * x;
  out[(c * h + y) * w + x] = fmaxf(fmaxf(from[0], from[1]), fmaxf(from[2 * w], from[2 * w + 1]));
}

// A step of the Adam optimiser.
KERNEL adam(float *weights, const float *gradients, float *m, float *v, int n, float rate, float beta1, float beta2) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float g = gradients[i];
    float a = m[i] = beta1 * m[i] + (1.0f - beta1) * g, b = v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
    weights[i] -= rate * a / (sqrtf(b) + 1e-8f);
  }
}

// Rotary positions: pairs of each row turn by an angle that a table gives.
KERNEL rotary(const float2 *in, const float2 *angles, float2 *out, int pairs, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float2 v = in[i], angle = angles[i / pairs % 512 * pairs + i % pairs];
  out[i] = {v.x * angle.x - v.y * angle.y, v.x * angle.y + v.y * angle.x};
}

// Weights of 8 bits with a scale for 32 of them, times a vector; a warp for each row.
KERNEL quantised_gemv(const int8_t *weights, const float *scales, const float *x, float *y, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  float sum = 0.0f;
  for (int block = 0; block < columns / 32; block++) {
    int i = block * 32 + lane;
    sum += weights[row * columns + i] * scales[row * (columns / 32) + block] * x[i];
  }
  for (int d = 16; d > 0; d /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0)
    y[row] = sum;
}
