// Reductions, scans and segments, as one writes them for a CPU.
#include "job.h"
#include <algorithm>
#include <omp.h>

NATIVE(dot) {
  const float *__restrict a = job.array<float>(0), *__restrict b = job.array<float>(1);
  int n = job.number(0);
  float sum = 0.0f;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
  for (int i = 0; i < n; i++)
    sum += a[i] * b[i];
  *job.array<float>(3) = sum;
}

NATIVE(arg_max) {
  const uint32_t *in = job.array<uint32_t>(0);
  int n = job.number(0);
  uint64_t best = 0;
#pragma omp parallel for simd schedule(static) reduction(max : best)
  for (int i = 0; i < n; i++)
    best = std::max(best, (uint64_t)in[i] << 32 | (uint32_t)(n - i));
  *job.array<uint64_t>(1) = best;
}

NATIVE(moments) {
  const float *in = job.array<float>(0);
  int n = job.number(0);
  double sum = 0.0, square = 0.0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum, square)
  for (int i = 0; i < n; i++) {
    double v = in[i];
    sum += v;
    square += v * v;
  }
  job.array<double>(1)[0] = sum;
  job.array<double>(1)[1] = square;
}

NATIVE(row_sums) {
  const float *in = job.array<float>(0);
  float *out = job.array<float>(1);
  int columns = job.number(0), rows = job.arrays[1].bytes / 4;
#pragma omp parallel for schedule(static)
  for (int r = 0; r < rows; r++) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < columns; c++)
      sum += in[r * columns + c];
    out[r] = sum;
  }
}

NATIVE(column_max) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int rows = job.number(0), columns = job.number(1);
#pragma omp parallel for schedule(static)
  for (int base = 0; base < columns; base += 256) {
    int end = std::min(base + 256, columns);
    std::copy(in + base, in + end, out + base);
    for (int r = 1; r < rows; r++)
#pragma omp simd
      for (int c = base; c < end; c++)
        out[c] = out[c] < in[r * columns + c] ? in[r * columns + c] : out[c];
  }
}

NATIVE(atomic_sums) {
  const int *in = job.array<int>(0);
  int *out = job.array<int>(1);
  int n = job.number(0), low = out[0], high = out[1], sum = out[2];
#pragma omp parallel for simd schedule(static) reduction(min : low) reduction(max : high) reduction(+ : sum)
  for (int i = 0; i < n; i++) {
    low = std::min(low, in[i]);
    high = std::max(high, in[i]);
    sum += in[i];
  }
  out[0] = low;
  out[1] = high;
  out[2] = sum;
}

NATIVE(count_if) {
  const float *in = job.array<float>(0);
  int *out = job.array<int>(1);
  int n = job.number(0), parts = job.arrays[1].bytes / 4;
  float low = job.number<float>(1), high = job.number<float>(2);
#pragma omp parallel for schedule(static)
  for (int part = 0; part < parts; part++) {
    int total = 0, end = std::min(n, (part + 1) * 4096);
#pragma omp simd reduction(+ : total)
    for (int i = part * 4096; i < end; i++)
      total += (in[i] > low) & (in[i] < high);
    out[part] = total;
  }
}

NATIVE(look_back) {
  const uint32_t *in = job.array<uint32_t>(0);
  uint32_t *out = job.array<uint32_t>(1);
  int n = job.number(0);
  std::vector<uint32_t> before(omp_get_max_threads() + 1);
#pragma omp parallel
  {
    int threads = omp_get_num_threads(), t = omp_get_thread_num();
    int begin = (int64_t)n * t / threads, end = (int64_t)n * (t + 1) / threads;
    uint32_t sum = 0;
    for (int i = begin; i < end; i++)
      sum += in[i];
    before[t + 1] = sum;
#pragma omp barrier
#pragma omp single
    for (int i = 0; i < threads; i++)
      before[i + 1] += before[i];
    sum = before[t];
    for (int i = begin; i < end; i++)
      out[i] = sum += in[i];
  }
}

NATIVE(segmented_sums) {
  const int *in = job.array<int>(0), *segment = job.array<int>(1);
  int *out = job.array<int>(2);
  int n = job.number(0);
#pragma omp parallel
  {
    int threads = omp_get_num_threads(), t = omp_get_thread_num();
    int begin = (int64_t)n * t / threads, end = (int64_t)n * (t + 1) / threads;
    for (int i = begin; i < end;) {
      int key = segment[i], sum = 0;
      for (; i < end && segment[i] == key; i++)
        sum += in[i];
#pragma omp atomic
      out[key] += sum;
    }
  }
}

NATIVE(compact) {
  const int *in = job.array<int>(0);
  int *out = job.array<int>(2);
  int n = job.number(0);
  std::vector<int> before(omp_get_max_threads() + 1);
#pragma omp parallel
  {
    int threads = omp_get_num_threads(), t = omp_get_thread_num();
    int begin = (int64_t)n * t / threads, end = (int64_t)n * (t + 1) / threads, count = 0;
    for (int i = begin; i < end; i++)
      count += in[i] % 3 == 0;
    before[t + 1] = count;
#pragma omp barrier
#pragma omp single
    for (int i = 0; i < threads; i++)
      before[i + 1] += before[i];
    int *to = out + before[t];
    for (int i = begin; i < end; i++)
      if (in[i] % 3 == 0)
        *to++ = in[i];
  }
}

NATIVE(distance) {
  const float *__restrict a = job.array<float>(0), *__restrict b = job.array<float>(1);
  int n = 4 * job.number(0);
  float sum = 0.0f;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
  for (int i = 0; i < n; i++)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  *job.array<float>(2) = sum;
}
