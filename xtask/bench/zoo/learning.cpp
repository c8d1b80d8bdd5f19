// Machine learning, as one writes it for a CPU.
// flags: -ffast-math
#include "job.h"
#include <algorithm>
#include <cmath>

static inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
static inline float tanh_fast(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

NATIVE(kmeans) {
  const float *points = job.array<float>(0), *centres = job.array<float>(1);
  int *labels = job.array<int>(2), *counts = job.array<int>(4);
  float *sums = job.array<float>(3);
  int n = job.number(0), k = job.number(1), dims = job.number(2);
#pragma omp parallel
  {
    std::vector<float> local(k * dims);
    std::vector<int> count(k);
#pragma omp for schedule(static)
    for (int base = 0; base < n; base += 64) {
      int size = std::min(64, n - base), label[64] = {};
      float best[64];
      std::fill(best, best + 64, 1e30f);
      for (int c = 0; c < k; c++) {
        float d[64] = {};
        for (int j = 0; j < dims; j++)
#pragma omp simd
          for (int i = 0; i < size; i++) {
            float v = points[j * n + base + i] - centres[c * dims + j];
            d[i] += v * v;
          }
#pragma omp simd
        for (int i = 0; i < size; i++) {
          label[i] = d[i] < best[i] ? c : label[i];
          best[i] = std::min(best[i], d[i]);
        }
      }
      for (int i = 0; i < size; i++) {
        labels[base + i] = label[i];
        count[label[i]]++;
        for (int j = 0; j < dims; j++)
          local[label[i] * dims + j] += points[j * n + base + i];
      }
    }
#pragma omp critical
    {
      for (int i = 0; i < k * dims; i++)
        sums[i] += local[i];
      for (int i = 0; i < k; i++)
        counts[i] += count[i];
    }
  }
}

NATIVE(lstm_cell) {
  const float *__restrict gates = job.array<float>(0), *__restrict bias = job.array<float>(1), *__restrict cell = job.array<float>(2);
  float *__restrict next = job.array<float>(3), *__restrict state = job.array<float>(4);
  int hidden = job.number(0), n = job.number(1);
#pragma omp parallel for schedule(static)
  for (int row = 0; row < n / hidden; row++) {
    const float *gate = gates + row * 4 * hidden;
#pragma omp simd
    for (int c = 0; c < hidden; c++) {
      int i = row * hidden + c;
      float in = sigmoid(gate[c] + bias[c]), forget = sigmoid(gate[hidden + c] + bias[hidden + c]);
      float fresh = tanh_fast(gate[2 * hidden + c] + bias[2 * hidden + c]), out = sigmoid(gate[3 * hidden + c] + bias[3 * hidden + c]);
      float v = forget * cell[i] + in * fresh;
      next[i] = v;
      state[i] = out * tanh_fast(v);
    }
  }
}

NATIVE(layer_norm) {
  const float *__restrict in = job.array<float>(0), *__restrict gain = job.array<float>(1), *__restrict bias = job.array<float>(2);
  float *__restrict out = job.array<float>(3);
  int rows = job.number(0), columns = job.number(1);
#pragma omp parallel for schedule(static)
  for (int row = 0; row < rows; row++) {
    const float *from = in + row * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < columns; i++) {
      sum += from[i];
      squares += from[i] * from[i];
    }
    float mean = sum / columns, scale = 1.0f / sqrtf(squares / columns - mean * mean + 1e-5f);
    for (int i = 0; i < columns; i++)
      out[row * columns + i] = (from[i] - mean) * scale * gain[i] + bias[i];
  }
}

// Scores of all keys, their softmax, then the weighted sum.
template <int D> static void attend(const float *queries, const float *keys, const float *values, float *out, int n, int m, float scale) {
#pragma omp parallel
  {
    std::vector<float> scores(m);
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++) {
      float top = -1e30f, total = 0.0f, sum[D] = {};
      for (int j = 0; j < m; j++) {
        float s = 0.0f;
        for (int d = 0; d < D; d++)
          s += queries[i * D + d] * keys[j * D + d];
        scores[j] = s * scale;
        top = std::max(top, scores[j]);
      }
      for (int j = 0; j < m; j++)
        total += scores[j] = expf(scores[j] - top);
      for (int j = 0; j < m; j++)
        for (int d = 0; d < D; d++)
          sum[d] += scores[j] * values[j * D + d];
      for (int d = 0; d < D; d++)
        out[i * D + d] = sum[d] / total;
    }
  }
}
NATIVE(attention) {
  attend<64>(job.array<float>(0), job.array<float>(1), job.array<float>(2), job.array<float>(3), job.number(0), job.number(1),
             job.number<float>(2));
}
NATIVE(attention_tiled) {
  int n = job.arrays[0].bytes / 128;
  attend<32>(job.array<float>(0), job.array<float>(1), job.array<float>(2), job.array<float>(3), n, job.number(0),
             job.number<float>(1));
}

NATIVE(gelu) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int n = job.number(0);
#pragma omp parallel for simd schedule(static)
  for (int i = 0; i < n; i++) {
    float x = in[i];
    out[i] = 0.5f * x * (1.0f + tanh_fast(0.79788456f * (x + 0.044715f * x * x * x)));
  }
}

NATIVE(embedding) {
  const float *table = job.array<float>(0);
  const int *indices = job.array<int>(1), *begins = job.array<int>(2);
  float *out = job.array<float>(3);
  int width = job.number(0), bags = job.arrays[2].bytes / 4 - 1;
#pragma omp parallel for schedule(static)
  for (int bag = 0; bag < bags; bag++) {
    float *__restrict to = out + bag * width;
    std::fill(to, to + width, 0.0f);
    for (int i = begins[bag]; i < begins[bag + 1]; i++) {
      const float *from = table + indices[i] * width;
      for (int c = 0; c < width; c++)
        to[c] += from[c];
    }
  }
}

NATIVE(conv_layer) {
  const float *in = job.array<float>(0), *weights = job.array<float>(1), *bias = job.array<float>(2);
  float *out = job.array<float>(3);
  int channels = job.number(0), w = job.number(1), h = job.number(2), outputs = job.arrays[2].bytes / 4;
#pragma omp parallel for schedule(static) collapse(2)
  for (int o = 0; o < outputs; o++)
    for (int y = 0; y < h; y++) {
      float *__restrict to = out + (o * h + y) * w;
      std::fill(to, to + w, bias[o]);
      for (int c = 0; c < channels; c++)
        for (int dy = std::max(-1, -y); dy <= std::min(1, h - 1 - y); dy++) {
          const float *row = in + (c * h + y + dy) * w, *weight = weights + ((o * channels + c) * 3 + dy + 1) * 3;
          to[0] += row[0] * weight[1] + row[1] * weight[2];
          for (int x = 1; x < w - 1; x++)
            to[x] += row[x - 1] * weight[0] + row[x] * weight[1] + row[x + 1] * weight[2];
          to[w - 1] += row[w - 2] * weight[0] + row[w - 1] * weight[1];
        }
      for (int x = 0; x < w; x++)
        to[x] = std::max(to[x], 0.0f);
    }
}

NATIVE(max_pool) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int w = job.number(0), h = job.number(1), rows = job.arrays[1].bytes / 4 / w;
#pragma omp parallel for schedule(static)
  for (int r = 0; r < rows; r++) {
    const float *a = in + (r / h * 2 * h + r % h * 2) * 2 * w, *b = a + 2 * w;
    for (int x = 0; x < w; x++)
      out[r * w + x] = std::max(std::max(a[2 * x], a[2 * x + 1]), std::max(b[2 * x], b[2 * x + 1]));
  }
}

NATIVE(adam) {
  float *__restrict weights = job.array<float>(0), *__restrict m = job.array<float>(2), *__restrict v = job.array<float>(3);
  const float *__restrict gradients = job.array<float>(1);
  int n = job.number(0);
  float rate = job.number<float>(1), beta1 = job.number<float>(2), beta2 = job.number<float>(3);
#pragma omp parallel for simd schedule(static)
  for (int i = 0; i < n; i++) {
    float g = gradients[i];
    float a = m[i] = beta1 * m[i] + (1.0f - beta1) * g, b = v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
    weights[i] -= rate * a / (sqrtf(b) + 1e-8f);
  }
}

NATIVE(rotary) {
  const float *__restrict in = job.array<float>(0), *__restrict angles = job.array<float>(1);
  float *__restrict out = job.array<float>(2);
  int pairs = job.number(0), n = job.number(1);
#pragma omp parallel for schedule(static)
  for (int row = 0; row < n / pairs; row++) {
    const float *v = in + row * 2 * pairs, *angle = angles + row % 512 * 2 * pairs;
    float *to = out + row * 2 * pairs;
    for (int p = 0; p < pairs; p++) {
      to[2 * p] = v[2 * p] * angle[2 * p] - v[2 * p + 1] * angle[2 * p + 1];
      to[2 * p + 1] = v[2 * p] * angle[2 * p + 1] + v[2 * p + 1] * angle[2 * p];
    }
  }
}

NATIVE(quantised_gemv) {
  const int8_t *weights = job.array<int8_t>(0);
  const float *scales = job.array<float>(1), *x = job.array<float>(2);
  float *y = job.array<float>(3);
  int rows = job.number(0), columns = job.number(1);
#pragma omp parallel for schedule(static)
  for (int row = 0; row < rows; row++) {
    float sum = 0.0f;
    for (int block = 0; block < columns / 32; block++) {
      float part = 0.0f;
      for (int i = block * 32; i < block * 32 + 32; i++)
        part += weights[row * columns + i] * x[i];
      sum += part * scales[row * (columns / 32) + block];
    }
    y[row] = sum;
  }
}
