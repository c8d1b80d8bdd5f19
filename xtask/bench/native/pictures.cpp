// Work on pixels.
#include "job.h"
#pragma GCC optimize("fp-contract=off") // as the kernel: escape times are compared bit for bit

// 32 pixels at once, until all have escaped.
static void mandelbrot(Job &job) {
  int width = job.number(0), height = job.number(1), limit = job.number(5);
  float x0 = job.number<float>(2), y0 = job.number<float>(3), step = job.number<float>(4);
  uint8_t *image = job.array<uint8_t>(0);
  s32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#pragma omp parallel for schedule(dynamic, 8)
  for (int py = 0; py < height; py++)
    for (int px = 0; px < width; px += 32) {
      f32x16 cx[2], x[2], y[2];
      s32x16 times[2] = {};
      float cy = y0 + py * step;
      for (int h = 0; h < 2; h++) {
        s32x16 at = lane + (px + 16 * h);
        cx[h] = x0 + __builtin_convertvector(at, f32x16) * step;
        x[h] = y[h] = cx[h] * 0.0f;
      }
      for (int i = 0; i < limit; i++) {
        s32x16 alive[2];
        for (int h = 0; h < 2; h++) {
          f32x16 xx = x[h] * x[h], yy = y[h] * y[h];
          alive[h] = xx + yy <= 4.0f;
          times[h] -= alive[h];
          y[h] = 2.0f * x[h] * y[h] + cy;
          x[h] = xx - yy + cx[h];
        }
        s32x16 any = alive[0] | alive[1];
        int left = 0;
        for (int j = 0; j < 16; j++)
          left |= any[j];
        if (!left)
          break;
      }
      for (int h = 0; h < 2; h++)
        for (int j = 0; j < 16; j++)
          image[(size_t)py * width + px + 16 * h + j] = (uint8_t)times[h][j];
    }
}

// The best disparity of 64 pixels at once: sums of each byte of a window, then of the four bytes of a pixel.
static void sad_stereo(Job &job) {
  constexpr int SPAN = 32;
  int width = job.number(0), height = job.number(1), pitch = job.number(2);
  const uint8_t *left = job.array<uint8_t>(0), *right = job.array<uint8_t>(1);
  int8_t *disparity = job.array<int8_t>(2);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x += SPAN) {
      uint16_t best[SPAN];
      int8_t where[SPAN] = {};
      for (uint16_t &b : best)
        b = 0xffff;
      for (int d = -16; d <= 16; d++) {
        uint16_t sums[4 * SPAN] = {};
        for (int wy = 0; wy < 5; wy++)
          for (int wx = -2; wx <= 2; wx++) {
            const uint8_t *l = left + 4 * ((size_t)(y + wy) * pitch + x + wx + 18), *r = right + 4 * ((size_t)(y + wy) * pitch + x + wx + d + 18);
#pragma omp simd
            for (int i = 0; i < 4 * SPAN; i++)
              sums[i] += l[i] > r[i] ? l[i] - r[i] : r[i] - l[i];
          }
        for (int i = 0; i < SPAN; i++) {
          uint16_t sum = sums[4 * i] + sums[4 * i + 1] + sums[4 * i + 2] + sums[4 * i + 3];
          where[i] = sum < best[i] ? d : where[i];
          best[i] = sum < best[i] ? sum : best[i];
        }
      }
      memcpy(disparity + (size_t)y * width + x, where, SPAN);
    }
}

// Rows of 16 bytes: the compiler makes psadbw of the inner loop.
static void sad_blocks(Job &job) {
  int words = job.number(0), across = job.number(1), down = job.number(2);
  const uint8_t *current = job.array<uint8_t>(0), *reference = job.array<uint8_t>(1);
  uint32_t *best = job.array<uint32_t>(2);
  int pitch = 4 * words, reference_pitch = 4 * (words + 8);
#pragma omp parallel for schedule(static)
  for (int by = 0; by < down; by++)
    for (int bx = 0; bx < across; bx++) {
      uint8_t block[256];
      for (int y = 0; y < 16; y++)
        memcpy(block + 16 * y, current + (size_t)(by * 16 + y) * pitch + bx * 16, 16);
      uint32_t lowest = ~0u;
      for (uint32_t dy = 0; dy < 32; dy++)
        for (uint32_t dx = 0; dx < 32; dx++) {
          const uint8_t *r = reference + (size_t)(by * 16 + dy) * reference_pitch + bx * 16 + dx;
          int sum = 0;
          for (int y = 0; y < 16; y++)
            for (int x = 0; x < 16; x++)
              sum += abs(block[16 * y + x] - r[(size_t)y * reference_pitch + x]);
          uint32_t here = (uint32_t)sum << 10 | dy << 5 | dx;
          lowest = here < lowest ? here : lowest;
        }
      best[by * across + bx] = lowest;
    }
}

static void convolution(Job &job) {
  int width = job.number(0), height = job.number(1);
  const float *in = job.array<float>(0);
  float *out = job.array<float>(1);
  const float weights[25] = {1, 4, 6, 4, 1, 4, 16, 24, 16, 4, 6, 24, 36, 24, 6, 4, 16, 24, 16, 4, 1, 4, 6, 4, 1};
  auto clamped = [](int at, int end) { return at < 0 ? 0 : at >= end ? end - 1 : at; };
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    const float *rows[5];
    for (int dy = 0; dy < 5; dy++)
      rows[dy] = in + (size_t)clamped(y + dy - 2, height) * width;
    float *to = out + (size_t)y * width;
    for (int x : {0, 1, width - 2, width - 1}) {
      float sum = 0;
      for (int dy = 0; dy < 5; dy++)
        for (int dx = 0; dx < 5; dx++)
          sum += weights[dy * 5 + dx] * rows[dy][clamped(x + dx - 2, width)];
      to[x] = sum * (1.0f / 256.0f);
    }
#pragma omp simd
    for (int x = 2; x < width - 2; x++) {
      float sum = 0;
      for (int dy = 0; dy < 5; dy++)
        for (int dx = 0; dx < 5; dx++)
          sum += weights[dy * 5 + dx] * rows[dy][x + dx - 2];
      to[x] = sum * (1.0f / 256.0f);
    }
  }
}

std::vector<Entry> pictures() {
  return {{"mandelbrot", {mandelbrot}}, {"sad_stereo", {sad_stereo}}, {"sad_blocks", {sad_blocks}}, {"convolution", {convolution}}};
}
