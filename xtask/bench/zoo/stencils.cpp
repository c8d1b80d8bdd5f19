// Stencils, as one writes them for a CPU: threads over rows or planes, vectors along a row.
#include "job.h"
#include <algorithm>
#include <cmath>

NATIVE(stencil5) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int w = job.number(0), h = job.number(1);
#pragma omp parallel for schedule(static)
  for (int y = 1; y < h - 1; y++)
    for (int i = y * w + 1; i < y * w + w - 1; i++)
      out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
}

NATIVE(stencil9) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int w = job.number(0), h = job.number(1);
  float centre = job.number<float>(2), edge = job.number<float>(3), corner = job.number<float>(4);
#pragma omp parallel for schedule(static)
  for (int y = 1; y < h - 1; y++) {
    const float *a = in + (y - 1) * w, *b = in + y * w, *c = in + (y + 1) * w;
    for (int x = 1; x < w - 1; x++) {
      float edges = a[x] + c[x] + b[x - 1] + b[x + 1], corners = a[x - 1] + a[x + 1] + c[x - 1] + c[x + 1];
      out[y * w + x] = centre * b[x] + edge * edges + corner * corners;
    }
  }
}

NATIVE(stencil7_march) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int nx = job.number(0), ny = job.number(1), nz = job.number(2), plane = nx * ny;
  float centre = job.number<float>(3), side = job.number<float>(4);
#pragma omp parallel for schedule(static)
  for (int z = 1; z < nz - 1; z++)
    for (int y = 1; y < ny - 1; y++)
      for (int i = z * plane + y * nx + 1; i < z * plane + y * nx + nx - 1; i++)
        out[i] = centre * in[i] + side * (in[i - plane] + in[i + plane] + in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]);
}

NATIVE(stencil13) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int nx = job.number(0), ny = job.number(1), nz = job.number(2), plane = nx * ny;
#pragma omp parallel for schedule(static)
  for (int z = 2; z < nz - 2; z++)
    for (int y = 2; y < ny - 2; y++)
      for (int i = z * plane + y * nx + 2; i < z * plane + y * nx + nx - 2; i++) {
        float near = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - plane] + in[i + plane];
        float far = in[i - 2] + in[i + 2] + in[i - 2 * nx] + in[i + 2 * nx] + in[i - 2 * plane] + in[i + 2 * plane];
        out[i] = 0.4f * in[i] + 0.08f * near + 0.02f * far;
      }
}

NATIVE(stencil25) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int nx = job.number(0), ny = job.number(1), nz = job.number(2), plane = nx * ny;
  const float star[5] = {-2.847222f, 1.6f, -0.2f, 0.02539683f, -0.00178571f};
#pragma omp parallel for schedule(static)
  for (int z = 4; z < nz - 4; z++)
    for (int y = 4; y < ny - 4; y++) {
      int row = z * plane + y * nx;
      for (int i = row + 4; i < row + nx - 4; i++) {
        float sum = 3.0f * star[0] * in[i];
        for (int r = 1; r <= 4; r++)
          sum += star[r] * (in[i - r * plane] + in[i + r * plane] + in[i - r] + in[i + r] + in[i - r * nx] + in[i + r * nx]);
        out[i] = sum;
      }
    }
}

NATIVE(stencil27) {
  const float *__restrict in = job.array<float>(0), *__restrict weights = job.array<float>(2);
  float *__restrict out = job.array<float>(1);
  int nx = job.number(0), ny = job.number(1), nz = job.number(2);
  float w0 = weights[0], w1 = weights[1], w2 = weights[2], w3 = weights[3];
#pragma omp parallel for schedule(static)
  for (int z = 1; z < nz - 1; z++)
    for (int y = 1; y < ny - 1; y++)
      for (int x = 1; x < nx - 1; x++) {
        float sum = 0.0f;
        for (int dz = -1; dz <= 1; dz++)
          for (int dy = -1; dy <= 1; dy++) {
            const float *row = in + ((z + dz) * ny + y + dy) * nx + x;
            int d = dz * dz + dy * dy;
            float at = d == 0 ? w0 : d == 1 ? w1 : w2, beside = d == 0 ? w1 : d == 1 ? w2 : w3;
            sum += at * row[0] + beside * (row[-1] + row[1]);
          }
        out[(z * ny + y) * nx + x] = sum;
      }
}

NATIVE(stencil_radius) {
  const float *__restrict in = job.array<float>(0), *__restrict weights = job.array<float>(1);
  float *__restrict out = job.array<float>(2);
  int n = job.number(0), radius = job.number(1);
#pragma omp parallel for schedule(static)
  for (int base = 0; base < n; base += 1024) {
    int end = std::min(base + 1024, n);
    float sum[1024] = {};
    for (int k = -radius; k <= radius; k++) {
      float weight = weights[k + radius];
      int from = std::max(base, -k), to = std::min(end, n - k);
      for (int i = from; i < to; i++)
        sum[i - base] += weight * in[i + k];
    }
    memcpy(out + base, sum, sizeof(float) * (end - base));
  }
}

NATIVE(jacobi) {
  float *a = job.array<float>(0), *b = job.array<float>(2);
  const float *force = job.array<float>(1);
  int w = job.number(0), h = job.number(1), steps = job.number(2);
  for (int step = 0; step < steps; step++, std::swap(a, b)) {
#pragma omp parallel for schedule(static)
    for (int y = 0; y < h; y++) {
      const float *__restrict in = a, *__restrict f = force + y * w;
      float *__restrict out = b + y * w;
      auto at = [&](int x) {
        float left = x > 0 ? in[y * w + x - 1] : 0.0f, right = x < w - 1 ? in[y * w + x + 1] : 0.0f;
        float up = y > 0 ? in[(y - 1) * w + x] : 0.0f, down = y < h - 1 ? in[(y + 1) * w + x] : 0.0f;
        return 0.25f * (left + right + up + down - f[x]);
      };
      out[0] = at(0);
      out[w - 1] = at(w - 1);
      if (y == 0 || y == h - 1) {
        for (int x = 1; x < w - 1; x++)
          out[x] = at(x);
      } else {
        const float *row = in + y * w;
        for (int x = 1; x < w - 1; x++)
          out[x] = 0.25f * (row[x - 1] + row[x + 1] + row[x - w] + row[x + w] - f[x]);
      }
    }
  }
}

NATIVE(fdtd) {
  float *__restrict hx = job.array<float>(0), *__restrict hy = job.array<float>(1), *__restrict ez = job.array<float>(2);
  int w = job.number(0), h = job.number(1), steps = job.number(2);
  for (int step = 0; step < steps; step++) {
#pragma omp parallel for schedule(static)
    for (int y = 0; y < h - 1; y++)
      for (int i = y * w; i < y * w + w - 1; i++) {
        hx[i] -= 0.5f * (ez[i + w] - ez[i]);
        hy[i] += 0.5f * (ez[i + 1] - ez[i]);
      }
#pragma omp parallel for schedule(static)
    for (int y = 1; y < h; y++)
      for (int i = y * w + 1; i < y * w + w; i++)
        ez[i] += 0.5f * (hy[i] - hy[i - 1] - hx[i] + hx[i - w]);
  }
}

NATIVE(life) {
  const uint8_t *__restrict in = job.array<uint8_t>(0);
  uint8_t *__restrict out = job.array<uint8_t>(1);
  int w = job.number(0), h = job.number(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++) {
    const uint8_t *a = in + (y + h - 1) % h * w, *b = in + y * w, *c = in + (y + 1) % h * w;
    uint8_t *to = out + y * w;
    auto cell = [&](int left, int x, int right) {
      uint8_t around = a[left] + a[x] + a[right] + b[left] + b[right] + c[left] + c[x] + c[right];
      to[x] = (around == 3) | ((around == 2) & b[x]);
    };
    cell(w - 1, 0, 1);
    for (int x = 1; x < w - 1; x++)
      cell(x - 1, x, x + 1);
    cell(w - 2, w - 1, 0);
  }
}

NATIVE(advect) {
  const float *__restrict in = job.array<float>(0), *__restrict u = job.array<float>(1), *__restrict v = job.array<float>(2);
  float *__restrict out = job.array<float>(3);
  int w = job.number(0), h = job.number(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++)
#pragma omp simd
    for (int x = 0; x < w; x++) {
      int i = y * w + x;
      float fx = std::min(std::max(x - u[i], 0.0f), w - 1.001f), fy = std::min(std::max(y - v[i], 0.0f), h - 1.001f);
      int ix = (int)fx, iy = (int)fy, from = iy * w + ix;
      float ax = fx - ix, ay = fy - iy;
      float top = in[from] + ax * (in[from + 1] - in[from]);
      float bottom = in[from + w] + ax * (in[from + w + 1] - in[from + w]);
      out[i] = top + ay * (bottom - top);
    }
}
