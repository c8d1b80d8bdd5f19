// Pictures: windows of 3x3 to 17x17 with clamped, mirrored and guarded edges, on floats, bytes and pixels of four bytes.
#include "zoo.cuh"

#define PIXEL                                                                                  \
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;    \
  if (x >= w || y >= h)                                                                        \
    return;

KERNEL conv3_clamp(const float *in, float *out, int w, int h, const float *weights) {
  PIXEL
  float sum = 0.0f;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      sum += weights[(dy + 1) * 3 + dx + 1] * in[clamp(y + dy, 0, h - 1) * w + clamp(x + dx, 0, w - 1)];
  out[y * w + x] = sum;
}

__device__ __forceinline__ int mirror(int i, int n) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; }
KERNEL conv5_mirror(const float *in, float *out, int w, int h, const float *weights) {
  PIXEL
  float sum = 0.0f;
  for (int dy = -2; dy <= 2; dy++)
    for (int dx = -2; dx <= 2; dx++)
      sum += weights[(dy + 2) * 5 + dx + 2] * in[mirror(y + dy, h) * w + mirror(x + dx, w)];
  out[y * w + x] = sum;
}

// Neighbours outside of the picture are left out.
KERNEL conv7_guard(const float *in, float *out, int w, int h, const float *weights) {
  PIXEL
  float sum = 0.0f;
  for (int dy = -3; dy <= 3; dy++)
    for (int dx = -3; dx <= 3; dx++) {
      int sx = x + dx, sy = y + dy;
      if (sx >= 0 && sx < w && sy >= 0 && sy < h)
        sum += weights[(dy + 3) * 7 + dx + 3] * in[sy * w + sx];
    }
  out[y * w + x] = sum;
}

// A tile with its halo in shared memory; zeros outside of the picture.
KERNEL conv9_shared(const float *in, float *out, int w, int h, const float *weights) {
  constexpr int T = 16, R = 4, S = T + 2 * R;
  __shared__ float tile[S][S], weight[81];
  int t = threadIdx.y * T + threadIdx.x;
  if (t < 81)
    weight[t] = weights[t];
  for (int i = t; i < S * S; i += T * T) {
    int sx = (int)blockIdx.x * T + i % S - R, sy = (int)blockIdx.y * T + i / S - R;
    tile[i / S][i % S] = sx >= 0 && sx < w && sy >= 0 && sy < h ? in[sy * w + sx] : 0.0f;
  }
  __syncthreads();
  PIXEL
  float sum = 0.0f;
  for (int dy = 0; dy < 9; dy++)
    for (int dx = 0; dx < 9; dx++)
      sum += weight[dy * 9 + dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
  out[y * w + x] = sum;
}

// The size of the window is an argument.
KERNEL conv17_clamp(const float *in, float *out, int w, int h, const float *weights, int radius) {
  PIXEL
  float sum = 0.0f;
  int size = 2 * radius + 1;
  for (int dy = 0; dy < size; dy++) {
    const float *row = in + clamp(y + dy - radius, 0, h - 1) * w;
    for (int dx = 0; dx < size; dx++)
      sum += weights[dy * size + dx] * row[clamp(x + dx - radius, 0, w - 1)];
  }
  out[y * w + x] = sum;
}

// A mean of 3x3 bytes, clamped.
KERNEL blur_bytes(const uint8_t *in, uint8_t *out, int w, int h) {
  PIXEL
  int sum = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      sum += in[clamp(y + dy, 0, h - 1) * w + clamp(x + dx, 0, w - 1)];
  out[y * w + x] = sum / 9;
}

// Pixels of three bytes to grey.
KERNEL grey(const uint8_t *in, uint8_t *out, int w, int h) {
  PIXEL
  const uint8_t *p = in + 3 * (y * w + x);
  out[y * w + x] = (77 * p[0] + 150 * p[1] + 29 * p[2] + 128) >> 8;
}

// Grey, then a mean over what lies inside of the picture, in one pass.
KERNEL grey_blur(const uint8_t *in, uint8_t *out, int w, int h) {
  PIXEL
  float sum = 0.0f;
  int count = 0;
  for (int dy = -2; dy <= 2; dy++)
    for (int dx = -2; dx <= 2; dx++) {
      int sx = x + dx, sy = y + dy;
      if (sx < 0 || sx >= w || sy < 0 || sy >= h)
        continue;
      const uint8_t *p = in + 3 * (sy * w + sx);
      sum += 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2];
      count++;
    }
  out[y * w + x] = (uint8_t)(sum / count);
}

// Binomial weights over pixels of four bytes.
KERNEL blur_pixels(const uchar4 *in, uchar4 *out, int w, int h) {
  PIXEL
  const int weights[5] = {1, 4, 6, 4, 1};
  int r = 128, g = 128, b = 128, a = 128;
#pragma unroll
  for (int dy = -2; dy <= 2; dy++)
#pragma unroll
    for (int dx = -2; dx <= 2; dx++) {
      uchar4 p = in[clamp(y + dy, 0, h - 1) * w + clamp(x + dx, 0, w - 1)];
      int weight = weights[dy + 2] * weights[dx + 2];
      r += weight * p.x;
      g += weight * p.y;
      b += weight * p.z;
      a += weight * p.w;
    }
  out[y * w + x] = {(uint8_t)(r >> 8), (uint8_t)(g >> 8), (uint8_t)(b >> 8), (uint8_t)(a >> 8)};
}

// Hue, saturation and value, in whole numbers.
KERNEL hue(const uchar4 *in, uchar4 *out, int w, int h) {
  PIXEL
  uchar4 p = in[y * w + x];
  int r = p.x, g = p.y, b = p.z;
  int top = max(r, max(g, b)), span = top - min(r, min(g, b));
  int hue = 0, saturation = 0;
  if (span > 0) {
    saturation = 255 * span / top;
    if (top == r)
      hue = 43 * (g - b) / span;
    else if (top == g)
      hue = 85 + 43 * (b - r) / span;
    else
      hue = 171 + 43 * (r - g) / span;
  }
  out[y * w + x] = {(uint8_t)hue, (uint8_t)saturation, (uint8_t)top, p.w};
}

// Sobel's gradient on bytes; the border stays black.
KERNEL sobel(const uint8_t *in, uint8_t *out, int w, int h) {
  PIXEL
  if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
    out[y * w + x] = 0;
    return;
  }
  const uint8_t *a = in + (y - 1) * w + x, *b = a + w, *c = b + w;
  int gx = a[1] - a[-1] + 2 * (b[1] - b[-1]) + c[1] - c[-1], gy = c[-1] - a[-1] + 2 * (c[0] - a[0]) + c[1] - a[1];
  out[y * w + x] = min((int)sqrtf((float)(gx * gx + gy * gy)), 255);
}

// The median of 3x3 bytes by exchanges.
__device__ __forceinline__ void order(int &a, int &b) {
  int low = min(a, b);
  b = max(a, b);
  a = low;
}
KERNEL median(const uint8_t *in, uint8_t *out, int w, int h) {
  PIXEL
  int v[9];
#pragma unroll
  for (int k = 0; k < 9; k++)
    v[k] = in[clamp(y + k / 3 - 1, 0, h - 1) * w + clamp(x + k % 3 - 1, 0, w - 1)];
#pragma unroll
  for (int i = 0; i < 5; i++)
#pragma unroll
    for (int j = 8; j > i; j--)
      order(v[j - 1], v[j]);
  out[y * w + x] = v[4];
}

// Scaling by any factor, between four pixels, with 8 bits of fraction.
KERNEL resize(const uint8_t *in, uint8_t *out, int w, int h, int from_w, int from_h, int step_x, int step_y) {
  PIXEL
  int fx = x * step_x, fy = y * step_y;
  int x0 = min(fx >> 8, from_w - 1), y0 = min(fy >> 8, from_h - 1), x1 = min(x0 + 1, from_w - 1), y1 = min(y0 + 1, from_h - 1);
  int ax = fx & 255, ay = fy & 255;
  int top = in[y0 * from_w + x0] * (256 - ax) + in[y0 * from_w + x1] * ax;
  int bottom = in[y1 * from_w + x0] * (256 - ax) + in[y1 * from_w + x1] * ax;
  out[y * w + x] = (top * (256 - ay) + bottom * ay + 32768) >> 16;
}

// Luminance with colours of half the resolution to pixels of four bytes.
KERNEL yuv(const uint8_t *luma, const uint8_t *blue, const uint8_t *red, uchar4 *out, int w, int h) {
  PIXEL
  int c = 298 * (luma[y * w + x] - 16), at = (y / 2) * (w / 2) + x / 2;
  int d = blue[at] - 128, e = red[at] - 128;
  int r = clamp((c + 409 * e + 128) >> 8, 0, 255), g = clamp((c - 100 * d - 208 * e + 128) >> 8, 0, 255);
  int b = clamp((c + 516 * d + 128) >> 8, 0, 255);
  out[y * w + x] = {(uint8_t)r, (uint8_t)g, (uint8_t)b, 255};
}

// A bilateral filter: weights fall with distance and with difference.
KERNEL bilateral(const float *in, float *out, int w, int h, float range) {
  PIXEL
  float here = in[y * w + x], sum = 0.0f, weights = 0.0f;
  for (int dy = -2; dy <= 2; dy++)
    for (int dx = -2; dx <= 2; dx++) {
      float v = in[clamp(y + dy, 0, h - 1) * w + clamp(x + dx, 0, w - 1)], d = v - here;
      float weight = __expf(-0.2f * (dx * dx + dy * dy) - range * d * d);
      sum += weight * v;
      weights += weight;
    }
  out[y * w + x] = sum / weights;
}

// Rotation around the centre, between four pixels; each that lies outside is black.
KERNEL rotate(const float *in, float *out, int w, int h, float c, float s) {
  PIXEL
  float rx = x - 0.5f * w, ry = y - 0.5f * h;
  float fx = c * rx - s * ry + 0.5f * w, fy = s * rx + c * ry + 0.5f * h;
  int ix = (int)floorf(fx), iy = (int)floorf(fy);
  float ax = fx - ix, ay = fy - iy;
  auto pixel = [&](int px, int py) { return px >= 0 && py >= 0 && px < w && py < h ? in[py * w + px] : 0.0f; };
  float top = (1 - ax) * pixel(ix, iy) + ax * pixel(ix + 1, iy);
  float bottom = (1 - ax) * pixel(ix, iy + 1) + ax * pixel(ix + 1, iy + 1);
  out[y * w + x] = (1 - ay) * top + ay * bottom;
}
