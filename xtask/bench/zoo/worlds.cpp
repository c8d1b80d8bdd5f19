// Simulations, searches and pictures of scenes, as one writes them for a CPU.
// flags: -ffast-math
#include "job.h"
#include <algorithm>
#include <cmath>

struct Float4 {
  float x, y, z, w;
};

static uint64_t complete(uint32_t all, uint32_t columns, uint32_t left, uint32_t right) {
  if (columns == all)
    return 1;
  uint64_t solutions = 0;
  for (uint32_t free = all & ~(columns | left | right); free;) {
    uint32_t place = free & -free;
    free ^= place;
    solutions += complete(all, columns | place, (left | place) << 1, (right | place) >> 1);
  }
  return solutions;
}
NATIVE(queens) {
  struct Start {
    uint32_t x, y, z, w;
  };
  const Start *starts = job.array<Start>(0);
  int count = job.number(0), size = job.number(1);
  uint64_t total = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : total)
  for (int i = 0; i < count; i++)
    total += complete((1u << size) - 1, starts[i].x, starts[i].y, starts[i].z);
  *job.array<uint64_t>(1) = total;
}

static inline float scene(float x, float y, float z) {
  float qx = x - 4.0f * floorf(x * 0.25f + 0.5f), qz = z - 4.0f * floorf(z * 0.25f + 0.5f);
  float ball = sqrtf(qx * qx + y * y + qz * qz) - 1.0f;
  return std::min(ball, y + 1.0f);
}
// Sixteen pixels at once, until all have arrived.
NATIVE(ray_march) {
  float *depth = job.array<float>(0);
  int w = job.number(0), h = job.number(1);
  float far = job.number<float>(2);
#pragma omp parallel for schedule(dynamic, 4)
  for (int y = 0; y < h; y++)
    for (int base = 0; base < w; base += 16) {
      float dx[16], dy[16], dz[16], t[16] = {};
      int running[16];
#pragma omp simd
      for (int j = 0; j < 16; j++) {
        dx[j] = (base + j - 0.5f * w) / h;
        dy[j] = (0.5f * h - y) / h - 0.1f;
        dz[j] = 1.0f / sqrtf(dx[j] * dx[j] + dy[j] * dy[j] + 1.0f);
        dx[j] *= dz[j];
        dy[j] *= dz[j];
        running[j] = 1;
      }
      for (int step = 0, any = 1; step < 96 && any; step++) {
        any = 0;
#pragma omp simd reduction(| : any)
        for (int j = 0; j < 16; j++) {
          float d = scene(2.0f + dx[j] * t[j], 2.0f + dy[j] * t[j], dz[j] * t[j]);
          running[j] = running[j] & !((d < 0.01f) | (t[j] > far));
          t[j] += running[j] ? d : 0.0f;
          any |= running[j];
        }
      }
      for (int j = 0; j < std::min(16, w - base); j++)
        depth[y * w + base + j] = std::min(t[j], far);
    }
}

NATIVE(ray_trace) {
  const Float4 *spheres = job.array<Float4>(0);
  uint8_t *out = job.array<uint8_t>(1);
  int w = job.number(0), h = job.number(1), count = job.number(2);
  const float lx = 0.48f, ly = -0.64f, lz = -0.6f;
#pragma omp parallel for schedule(dynamic, 4)
  for (int y = 0; y < h; y++)
    for (int base = 0; base < w; base += 16) {
      float dx[16], dy[16], dz[16], nearest[16];
      int hit[16];
#pragma omp simd
      for (int j = 0; j < 16; j++) {
        float fx = (base + j - 0.5f * w) / h, fy = (y - 0.5f * h) / h, inverse = 1.0f / sqrtf(fx * fx + fy * fy + 1.0f);
        dx[j] = fx * inverse;
        dy[j] = fy * inverse;
        dz[j] = inverse;
        nearest[j] = 1e30f;
        hit[j] = -1;
      }
      for (int i = 0; i < count; i++) {
        Float4 s = spheres[i];
        float c = s.x * s.x + s.y * s.y + s.z * s.z - s.w * s.w;
#pragma omp simd
        for (int j = 0; j < 16; j++) {
          float b = dx[j] * s.x + dy[j] * s.y + dz[j] * s.z, d = b * b - c, t = b - sqrtf(std::max(d, 0.0f));
          bool nearer = (d > 0.0f) & (t > 0.0f) & (t < nearest[j]);
          nearest[j] = nearer ? t : nearest[j];
          hit[j] = nearer ? i : hit[j];
        }
      }
      for (int j = 0; j < std::min(16, w - base); j++) {
        float shade = 0.1f;
        if (hit[j] >= 0) {
          Float4 s = spheres[hit[j]];
          float px = dx[j] * nearest[j], py = dy[j] * nearest[j], pz = dz[j] * nearest[j];
          float nx = (px - s.x) / s.w, ny = (py - s.y) / s.w, nz = (pz - s.z) / s.w;
          float light = std::max(nx * lx + ny * ly + nz * lz, 0.0f);
          for (int i = 0; i < count && light > 0.0f; i++) {
            Float4 o = spheres[i];
            float ox = o.x - px, oy = o.y - py, oz = o.z - pz;
            float b = ox * lx + oy * ly + oz * lz, d = b * b - (ox * ox + oy * oy + oz * oz - o.w * o.w);
            if (i != hit[j] && d > 0.0f && b > 0.0f)
              light = 0.0f;
          }
          shade = 0.2f + 0.8f * light;
        }
        out[y * w + base + j] = (uint8_t)(255.0f * shade);
      }
    }
}

NATIVE(boltzmann) {
  const float *__restrict in = job.array<float>(0);
  float *__restrict out = job.array<float>(1);
  int w = job.number(0), h = job.number(1);
  float omega = job.number<float>(2);
  const int cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
#pragma omp parallel for schedule(static)
  for (int y = 0; y < h; y++) {
    const float *rows[9];
    for (int k = 0; k < 9; k++)
      rows[k] = in + (k * h + (y - cy[k] + h) % h) * w;
    auto cell = [&](int x, int left, int right) {
      float a = rows[0][x], b = rows[1][left], c = rows[2][x], d = rows[3][right], e = rows[4][x];
      float f = rows[5][left], g = rows[6][right], i = rows[7][right], j = rows[8][left];
      float density = a + b + c + d + e + f + g + i + j;
      float ux = (b - d + f - g - i + j) / density, uy = (c - e + f + g - i - j) / density, square = 1.5f * (ux * ux + uy * uy);
      auto to = [&](int k, float f, float weight, float u) {
        u *= 3.0f;
        out[(k * h + y) * w + x] = f + omega * (weight * density * (1.0f + u + 0.5f * u * u - square) - f);
      };
      to(0, a, 4.0f / 9, 0.0f);
      to(1, b, 1.0f / 9, ux);
      to(2, c, 1.0f / 9, uy);
      to(3, d, 1.0f / 9, -ux);
      to(4, e, 1.0f / 9, -uy);
      to(5, f, 1.0f / 36, ux + uy);
      to(6, g, 1.0f / 36, uy - ux);
      to(7, i, 1.0f / 36, -ux - uy);
      to(8, j, 1.0f / 36, ux - uy);
    };
    cell(0, w - 1, 1);
#pragma omp simd
    for (int x = 1; x < w - 1; x++)
      cell(x, x - 1, x + 1);
    cell(w - 1, w - 2, 0);
  }
}

NATIVE(molecules) {
  const Float4 *__restrict positions = job.array<Float4>(0);
  const int *__restrict neighbours = job.array<int>(1);
  Float4 *__restrict forces = job.array<Float4>(2);
  int n = job.number(0), most = job.number(1);
  float cut = job.number<float>(2);
#pragma omp parallel for schedule(static)
  for (int base = 0; base < n; base += 64) {
    int count = std::min(64, n - base);
    float fx[64] = {}, fy[64] = {}, fz[64] = {};
    for (int k = 0; k < most; k++)
#pragma omp simd
      for (int j = 0; j < count; j++) {
        Float4 p = positions[base + j], q = positions[neighbours[k * n + base + j]];
        float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z, r2 = dx * dx + dy * dy + dz * dz;
        float inverse = 1.0f / r2, r6 = inverse * inverse * inverse, force = r2 < cut ? r6 * (r6 - 0.5f) * inverse : 0.0f;
        fx[j] += dx * force;
        fy[j] += dy * force;
        fz[j] += dz * force;
      }
    for (int j = 0; j < count; j++)
      forces[base + j] = {fx[j], fy[j], fz[j], 0.0f};
  }
}

NATIVE(deposit) {
  const float *positions = job.array<float>(0);
  float *grid = job.array<float>(1);
  int n = job.number(0), side = job.number(1);
#pragma omp parallel
  {
    std::vector<float> local(side * side);
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++) {
      float px = positions[2 * i], py = positions[2 * i + 1];
      int x = (int)px, y = (int)py;
      float ax = px - x, ay = py - y, *to = local.data() + y * side + x;
      to[0] += (1 - ax) * (1 - ay);
      to[1] += ax * (1 - ay);
      to[side] += (1 - ax) * ay;
      to[side + 1] += ax * ay;
    }
#pragma omp critical
    for (int i = 0; i < side * side; i++)
      grid[i] += local[i];
  }
}

// Tiles of 64 along diagonals of tiles.
NATIVE(align) {
  const uint8_t *a = job.array<uint8_t>(0), *b = job.array<uint8_t>(1);
  int *score = job.array<int>(2), n = job.number(0), pitch = n + 1, tiles = n / 64;
  for (int d = 0; d < 2 * tiles - 1; d++)
#pragma omp parallel for schedule(static)
    for (int ty = std::max(0, d - tiles + 1); ty <= std::min(d, tiles - 1); ty++)
      for (int y = ty * 64 + 1; y <= ty * 64 + 64; y++)
        for (int x = (d - ty) * 64 + 1; x <= (d - ty) * 64 + 64; x++) {
          int same = a[y - 1] == b[x - 1] ? 2 : -1;
          const int *above = score + (y - 1) * pitch + x;
          score[y * pitch + x] = std::max(above[-1] + same, std::max(above[0], score[y * pitch + x - 1]) - 1);
        }
}

NATIVE(edit_distance) {
  const uint8_t *a = job.array<uint8_t>(0), *b = job.array<uint8_t>(1);
  const int *lengths = job.array<int>(2);
  int *out = job.array<int>(3), pairs = job.number(0);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < pairs; i++) {
    int na = lengths[2 * i], nb = lengths[2 * i + 1], row[33];
    for (int x = 0; x <= nb; x++)
      row[x] = x;
    for (int y = 1; y <= na; y++) {
      int diagonal = row[0];
      row[0] = y;
      for (int x = 1; x <= nb; x++) {
        int above = row[x];
        row[x] = std::min(std::min(above, row[x - 1]) + 1, diagonal + (a[i * 32 + y - 1] != b[i * 32 + x - 1]));
        diagonal = above;
      }
    }
    out[i] = row[nb];
  }
}

NATIVE(cheapest_path) {
  const int *costs = job.array<int>(0);
  int *from = job.array<int>(1), *to = job.array<int>(2), columns = job.number(0), rows = job.number(1);
  for (int row = 0; row < rows; row++, std::swap(from, to)) {
    const int *cost = costs + row * columns, *before = from;
    int *after = to;
    after[0] = std::min(before[0], before[1]) + cost[0];
    after[columns - 1] = std::min(before[columns - 1], before[columns - 2]) + cost[columns - 1];
#pragma omp parallel for simd schedule(static)
    for (int x = 1; x < columns - 1; x++)
      after[x] = std::min(before[x], std::min(before[x - 1], before[x + 1])) + cost[x];
  }
  // Where the launches leave the last row.
  int *last = job.array<int>(rows / 8 % 2 == 0 ? 1 : 2);
  if (from != last)
    memcpy(last, from, 4 * columns);
}

// Sixteen pixels at once, until all have escaped.
NATIVE(julia) {
  uint8_t *out = job.array<uint8_t>(0);
  int w = job.number(0), h = job.number(1);
  float cr = job.number<float>(2), ci = job.number<float>(3);
#pragma omp parallel for schedule(dynamic, 4)
  for (int y = 0; y < h; y++)
    for (int base = 0; base < w; base += 16) {
      float re[16], im[16];
      int count[16] = {}, any = 1;
      for (int j = 0; j < 16; j++) {
        re[j] = 3.0f * (base + j - 0.5f * w) / w;
        im[j] = 2.0f * (y - 0.5f * h) / h;
      }
      for (int i = 0; i < 200 && any; i++) {
        any = 0;
#pragma omp simd reduction(| : any)
        for (int j = 0; j < 16; j++) {
          int inside = re[j] * re[j] + im[j] * im[j] < 4.0f;
          float r2 = re[j] * re[j] - im[j] * im[j], i2 = 2.0f * re[j] * im[j];
          float next = r2 * re[j] - i2 * im[j] + cr;
          im[j] = inside ? r2 * im[j] + i2 * re[j] + ci : im[j];
          re[j] = inside ? next : re[j];
          count[j] += inside;
          any |= inside;
        }
      }
      for (int j = 0; j < std::min(16, w - base); j++)
        out[y * w + base + j] = count[j];
    }
}

NATIVE(collatz) {
  int *out = job.array<int>(0), each = job.number(0), threads = job.arrays[0].bytes / 4;
#pragma omp parallel for schedule(static)
  for (int t = 0; t < threads; t++) {
    int longest = 0;
    for (int k = 0; k < each; k++) {
      uint64_t v = (uint64_t)t * each + k + 1;
      int length = 0;
      while (v != 1) {
        v = v % 2 ? 3 * v + 1 : v / 2;
        length++;
      }
      longest = std::max(longest, length);
    }
    out[t] = longest;
  }
}
