// Pictures, as one writes them for a CPU: threads over rows; edges apart from the inside where that is short to write.
// flags: -ffast-math
#include "job.h"
#include <algorithm>
#include <cmath>

struct Pixel {
  uint8_t x, y, z, w;
};

static int clamp(int i, int low, int high) { return std::min(std::max(i, low), high); }
static int mirror(int i, int n) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; }

// A weighted window of any radius: the inside of a row without tests, its ends with `at`.
template <int R, typename At> static void window(const float *in, float *out, int w, int h, const float *weights, At at) {
  constexpr int S = 2 * R + 1;
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++) {
    auto edge = [&](int x) {
      float sum = 0.0f;
      for (int dy = -R; dy <= R; dy++)
        for (int dx = -R; dx <= R; dx++)
          sum += weights[(dy + R) * S + dx + R] * at(x + dx, y + dy);
      out[y * w + x] = sum;
    };
    bool inside = y >= R && y < h - R;
    if (inside) {
      // Sums of 64 pixels at once; the last block overlaps the one before.
      for (int block = R; block < w - R; block += 64) {
        int x = std::max(std::min(block, w - R - 64), R), count = std::min(64, w - R - x);
        float sum[64] = {};
        for (int dy = -R; dy <= R; dy++)
          for (int dx = -R; dx <= R; dx++) {
            float weight = weights[(dy + R) * S + dx + R];
            const float *from = in + (y + dy) * w + x + dx;
            if (count == 64)
              for (int j = 0; j < 64; j++)
                sum[j] += weight * from[j];
            else
              for (int j = 0; j < count; j++)
                sum[j] += weight * from[j];
          }
        std::copy(sum, sum + count, out + y * w + x);
      }
    }
    for (int x = 0; x < w; x++)
      if (!inside || x < R || x >= w - R)
        edge(x);
  }
}

NATIVE(conv3_clamp) {
  const float *in = job.array<float>(0);
  int w = job.number(0), h = job.number(1);
  window<1>(in, job.array<float>(1), w, h, job.array<float>(2),
            [=](int x, int y) { return in[clamp(y, 0, h - 1) * w + clamp(x, 0, w - 1)]; });
}
NATIVE(conv5_mirror) {
  const float *in = job.array<float>(0);
  int w = job.number(0), h = job.number(1);
  window<2>(in, job.array<float>(1), w, h, job.array<float>(2),
            [=](int x, int y) { return in[mirror(y, h) * w + mirror(x, w)]; });
}
NATIVE(conv7_guard) {
  const float *in = job.array<float>(0);
  int w = job.number(0), h = job.number(1);
  window<3>(in, job.array<float>(1), w, h, job.array<float>(2),
            [=](int x, int y) { return x >= 0 && x < w && y >= 0 && y < h ? in[y * w + x] : 0.0f; });
}
NATIVE(conv9_shared) {
  const float *in = job.array<float>(0);
  int w = job.number(0), h = job.number(1);
  window<4>(in, job.array<float>(1), w, h, job.array<float>(2),
            [=](int x, int y) { return x >= 0 && x < w && y >= 0 && y < h ? in[y * w + x] : 0.0f; });
}

// Any radius: rows with their ends repeated, then sums of 64 pixels at once.
NATIVE(conv17_clamp) {
  const float *in = job.array<float>(0), *weights = job.array<float>(2);
  float *out = job.array<float>(1);
  int w = job.number(0), h = job.number(1), radius = job.number(2), size = 2 * radius + 1, pitch = w + 2 * radius + 64;
  std::vector<float> padded(h * pitch);
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int y = 0; y < h; y++)
      for (int x = 0; x < pitch; x++)
        padded[y * pitch + x] = in[y * w + clamp(x - radius, 0, w - 1)];
#pragma omp for schedule(static)
    for (int y = 0; y < h; y++)
      for (int x = 0; x < w; x += 64) {
        float sum[64] = {};
        for (int dy = 0; dy < size; dy++) {
          const float *row = padded.data() + clamp(y + dy - radius, 0, h - 1) * pitch + x;
          for (int dx = 0; dx < size; dx++)
            for (int j = 0; j < 64; j++)
              sum[j] += weights[dy * size + dx] * row[dx + j];
        }
        std::copy(sum, sum + std::min(64, w - x), out + y * w + x);
      }
  }
}

NATIVE(blur_bytes) {
  const uint8_t *__restrict in = job.array<uint8_t>(0);
  uint8_t *__restrict out = job.array<uint8_t>(1);
  int w = job.number(0), h = job.number(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++) {
    const uint8_t *a = in + std::max(y - 1, 0) * w, *b = in + y * w, *c = in + std::min(y + 1, h - 1) * w;
    auto at = [&](int left, int x, int right) {
      int sum = a[left] + a[x] + a[right] + b[left] + b[x] + b[right] + c[left] + c[x] + c[right];
      out[y * w + x] = sum / 9;
    };
    at(0, 0, 1);
    for (int x = 1; x < w - 1; x++)
      at(x - 1, x, x + 1);
    at(w - 2, w - 1, w - 1);
  }
}

NATIVE(grey) {
  const uint8_t *__restrict in = job.array<uint8_t>(0);
  uint8_t *__restrict out = job.array<uint8_t>(1);
  int n = job.number(0) * job.number(1);
#pragma omp parallel for simd schedule(static)
  for (int i = 0; i < n; i++)
    out[i] = (77 * in[3 * i] + 150 * in[3 * i + 1] + 29 * in[3 * i + 2] + 128) >> 8;
}

NATIVE(grey_blur) {
  const uint8_t *__restrict in = job.array<uint8_t>(0);
  uint8_t *__restrict out = job.array<uint8_t>(1);
  int w = job.number(0), h = job.number(1);
#pragma omp parallel
  {
    // Sums of columns over five rows, then over five columns.
    std::vector<float> column(w);
#pragma omp for schedule(static)
    for (int y = 0; y < h; y++) {
      int top = std::max(y - 2, 0), bottom = std::min(y + 2, h - 1);
      std::fill(column.begin(), column.end(), 0.0f);
      for (int sy = top; sy <= bottom; sy++) {
        const uint8_t *row = in + 3 * sy * w;
        for (int x = 0; x < w; x++)
          column[x] += 0.299f * row[3 * x] + 0.587f * row[3 * x + 1] + 0.114f * row[3 * x + 2];
      }
      int rows = bottom - top + 1;
      for (int x = 2; x < w - 2; x++)
        out[y * w + x] = (column[x - 2] + column[x - 1] + column[x] + column[x + 1] + column[x + 2]) / (float)(5 * rows);
      for (int x : {0, 1, w - 2, w - 1}) {
        int left = std::max(x - 2, 0), right = std::min(x + 2, w - 1);
        float sum = 0.0f;
        for (int sx = left; sx <= right; sx++)
          sum += column[sx];
        out[y * w + x] = sum / (rows * (right - left + 1));
      }
    }
  }
}

NATIVE(blur_pixels) {
  const Pixel *__restrict in = job.array<Pixel>(0);
  Pixel *__restrict out = job.array<Pixel>(1);
  int w = job.number(0), h = job.number(1);
  const int weights[5] = {1, 4, 6, 4, 1};
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++) {
    const uint8_t *rows[5];
    for (int dy = 0; dy < 5; dy++)
      rows[dy] = &in[clamp(y + dy - 2, 0, h - 1) * w].x;
    uint8_t *to = &out[y * w].x;
    for (int i = 8; i < 4 * (w - 2); i++) {
      int sum = 128;
      for (int dy = 0; dy < 5; dy++)
        for (int dx = 0; dx < 5; dx++)
          sum += weights[dy] * weights[dx] * rows[dy][i + 4 * (dx - 2)];
      to[i] = sum >> 8;
    }
    for (int x : {0, 1, w - 2, w - 1})
      for (int c = 0; c < 4; c++) {
        int sum = 128;
        for (int dy = 0; dy < 5; dy++)
          for (int dx = 0; dx < 5; dx++)
            sum += weights[dy] * weights[dx] * rows[dy][4 * clamp(x + dx - 2, 0, w - 1) + c];
        to[4 * x + c] = sum >> 8;
      }
  }
}

NATIVE(hue) {
  const Pixel *__restrict in = job.array<Pixel>(0);
  Pixel *__restrict out = job.array<Pixel>(1);
  int n = job.number(0) * job.number(1);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    Pixel p = in[i];
    int r = p.x, g = p.y, b = p.z, top = std::max(r, std::max(g, b)), span = top - std::min(r, std::min(g, b));
    int hue = 0, saturation = 0;
    if (span > 0) {
      saturation = 255 * span / top;
      int from = top == r ? g - b : top == g ? b - r : r - g, base = top == r ? 0 : top == g ? 85 : 171;
      hue = base + 43 * from / span;
    }
    out[i] = {(uint8_t)hue, (uint8_t)saturation, (uint8_t)top, p.w};
  }
}

// Quotients of such small numbers are exact enough as floats to be truncated, and floats have vectors.
NATIVE_WAY(hue, floats) {
  const Pixel *__restrict in = job.array<Pixel>(0);
  Pixel *__restrict out = job.array<Pixel>(1);
  int n = job.number(0) * job.number(1);
#pragma omp parallel for simd schedule(static)
  for (int i = 0; i < n; i++) {
    Pixel p = in[i];
    int r = p.x, g = p.y, b = p.z, top = std::max(r, std::max(g, b)), span = top - std::min(r, std::min(g, b));
    int from = top == r ? g - b : top == g ? b - r : r - g, base = top == r ? 0 : top == g ? 85 : 171;
    int saturation = (255 * span + 0.5f) / std::max(top, 1);
    float turn = 43 * from;
    int hue = (turn + (turn < 0 ? -0.5f : 0.5f)) / std::max(span, 1);
    out[i] = {(uint8_t)(span > 0 ? base + hue : 0), (uint8_t)saturation, (uint8_t)top, p.w};
  }
}

NATIVE(sobel) {
  const uint8_t *__restrict in = job.array<uint8_t>(0);
  uint8_t *__restrict out = job.array<uint8_t>(1);
  int w = job.number(0), h = job.number(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++) {
    uint8_t *to = out + y * w;
    if (y == 0 || y == h - 1) {
      memset(to, 0, w);
      continue;
    }
    const uint8_t *a = in + (y - 1) * w, *b = a + w, *c = b + w;
    to[0] = to[w - 1] = 0;
    for (int x = 1; x < w - 1; x++) {
      int gx = a[x + 1] - a[x - 1] + 2 * (b[x + 1] - b[x - 1]) + c[x + 1] - c[x - 1];
      int gy = c[x - 1] - a[x - 1] + 2 * (c[x] - a[x]) + c[x + 1] - a[x + 1];
      to[x] = std::min((int)sqrtf((float)(gx * gx + gy * gy)), 255);
    }
  }
}

// An exchange network for the median of nine, vectors along a row.
static inline void order(uint8_t &a, uint8_t &b) {
  uint8_t low = std::min(a, b);
  b = std::max(a, b);
  a = low;
}
NATIVE(median) {
  const uint8_t *in = job.array<uint8_t>(0);
  uint8_t *out = job.array<uint8_t>(1);
  int w = job.number(0), h = job.number(1);
#pragma omp parallel
  {
    // Rows with their ends repeated.
    std::vector<uint8_t> padded(3 * (w + 2));
#pragma omp for schedule(static)
    for (int y = 0; y < h; y++) {
      for (int k = 0; k < 3; k++) {
        const uint8_t *row = in + clamp(y + k - 1, 0, h - 1) * w;
        uint8_t *to = padded.data() + k * (w + 2);
        memcpy(to + 1, row, w);
        to[0] = row[0];
        to[w + 1] = row[w - 1];
      }
      const uint8_t *__restrict a = padded.data(), *__restrict b = a + w + 2, *__restrict c = b + w + 2;
      uint8_t *__restrict to = out + y * w;
#pragma omp simd
      for (int x = 0; x < w; x++) {
        uint8_t p = a[x], q = a[x + 1], r = a[x + 2], s = b[x], t = b[x + 1], u = b[x + 2], v = c[x], z = c[x + 1], k = c[x + 2];
        order(q, r), order(t, u), order(z, k);
        order(p, q), order(s, t), order(v, z);
        order(q, r), order(t, u), order(z, k);
        order(p, s), order(u, k), order(t, z);
        order(s, v), order(q, t), order(r, u);
        order(t, z), order(t, r), order(v, t);
        order(t, r);
        to[x] = t;
      }
    }
  }
}

NATIVE(resize) {
  const uint8_t *__restrict in = job.array<uint8_t>(0);
  uint8_t *__restrict out = job.array<uint8_t>(1);
  int w = job.number(0), h = job.number(1), from_w = job.number(2), from_h = job.number(3);
  int step_x = job.number(4), step_y = job.number(5);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++) {
    int fy = y * step_y, y0 = std::min(fy >> 8, from_h - 1), y1 = std::min(y0 + 1, from_h - 1), ay = fy & 255;
    const uint8_t *a = in + y0 * from_w, *b = in + y1 * from_w;
    for (int x = 0; x < w; x++) {
      int fx = x * step_x, x0 = std::min(fx >> 8, from_w - 1), x1 = std::min(x0 + 1, from_w - 1), ax = fx & 255;
      int top = a[x0] * (256 - ax) + a[x1] * ax, bottom = b[x0] * (256 - ax) + b[x1] * ax;
      out[y * w + x] = (top * (256 - ay) + bottom * ay + 32768) >> 16;
    }
  }
}

NATIVE(yuv) {
  const uint8_t *__restrict luma = job.array<uint8_t>(0), *__restrict blue = job.array<uint8_t>(1),
                *__restrict red = job.array<uint8_t>(2);
  Pixel *__restrict out = job.array<Pixel>(3);
  int w = job.number(0), h = job.number(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      int c = 298 * (luma[y * w + x] - 16), at = (y / 2) * (w / 2) + x / 2, d = blue[at] - 128, e = red[at] - 128;
      int r = clamp((c + 409 * e + 128) >> 8, 0, 255), g = clamp((c - 100 * d - 208 * e + 128) >> 8, 0, 255);
      int b = clamp((c + 516 * d + 128) >> 8, 0, 255);
      out[y * w + x] = {(uint8_t)r, (uint8_t)g, (uint8_t)b, 255};
    }
}

NATIVE(bilateral) {
  const float *in = job.array<float>(0);
  float *out = job.array<float>(1);
  int w = job.number(0), h = job.number(1);
  float range = job.number<float>(2);
#pragma omp parallel
  {
    // Five rows with their ends repeated.
    std::vector<float> padded(5 * (w + 4));
#pragma omp for schedule(static)
    for (int y = 0; y < h; y++) {
      for (int k = 0; k < 5; k++)
        for (int x = 0; x < w + 4; x++)
          padded[k * (w + 4) + x] = in[clamp(y + k - 2, 0, h - 1) * w + clamp(x - 2, 0, w - 1)];
      for (int x = 0; x < w; x += 64) {
        int count = std::min(64, w - x);
        float sum[64] = {}, weights[64] = {};
        const float *here = padded.data() + 2 * (w + 4) + x + 2;
        for (int dy = 0; dy < 5; dy++)
          for (int dx = 0; dx < 5; dx++) {
            const float *from = padded.data() + dy * (w + 4) + x + dx;
            float far = -0.2f * ((dx - 2) * (dx - 2) + (dy - 2) * (dy - 2));
#pragma omp simd
            for (int j = 0; j < count; j++) {
              float d = from[j] - here[j], weight = expf(far - range * d * d);
              sum[j] += weight * from[j];
              weights[j] += weight;
            }
          }
        for (int j = 0; j < count; j++)
          out[y * w + x + j] = sum[j] / weights[j];
      }
    }
  }
}

NATIVE(rotate) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int w = job.number(0), h = job.number(1);
  float c = job.number<float>(2), s = job.number<float>(3);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++)
#pragma omp simd
    for (int x = 0; x < w; x++) {
      float rx = x - 0.5f * w, ry = y - 0.5f * h;
      float fx = c * rx - s * ry + 0.5f * w, fy = s * rx + c * ry + 0.5f * h;
      int ix = (int)floorf(fx), iy = (int)floorf(fy);
      float ax = fx - ix, ay = fy - iy;
      auto pixel = [&](int px, int py) { return px >= 0 && py >= 0 && px < w && py < h ? in[py * w + px] : 0.0f; };
      float top = (1 - ax) * pixel(ix, iy) + ax * pixel(ix + 1, iy);
      float bottom = (1 - ax) * pixel(ix, iy + 1) + ax * pixel(ix + 1, iy + 1);
      out[y * w + x] = (1 - ay) * top + ay * bottom;
    }
}
