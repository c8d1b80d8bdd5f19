// Simulations, searches and pictures of scenes: loops whose length data decide.
#include "zoo.cuh"

// N queens by backtracking with bits: each thread completes one placement of the first rows.
KERNEL queens(const uint4 *starts, uint64_t *total, int count, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned solutions = 0;
  if (i < count) {
    unsigned all = (1u << size) - 1;
    unsigned columns[16], left[16], right[16], free[16];
    uint4 start = starts[i];
    columns[0] = start.x;
    left[0] = start.y;
    right[0] = start.z;
    free[0] = all & ~(start.x | start.y | start.z);
    int depth = 0;
    while (depth >= 0) {
      unsigned places = free[depth];
      if (places == 0) {
        depth--;
        continue;
      }
      unsigned place = places & -places;
      free[depth] = places ^ place;
      unsigned c = columns[depth] | place;
      if (c == all) {
        solutions++;
        continue;
      }
      unsigned l = (left[depth] | place) << 1, r = (right[depth] | place) >> 1;
      depth++;
      columns[depth] = c;
      left[depth] = l;
      right[depth] = r;
      free[depth] = all & ~(c | l | r);
    }
  }
  for (int d = 16; d > 0; d /= 2)
    solutions += __shfl_xor_sync(0xffffffffu, (int)solutions, d);
  if (threadIdx.x % 32 == 0 && solutions)
    atomicAdd(total, (uint64_t)solutions);
}

// Ray marching: steps along each pixel's ray as far as nothing is near, to spheres on a lattice over a floor.
__device__ __forceinline__ float scene(float x, float y, float z) {
  float qx = x - 4.0f * floorf(x * 0.25f + 0.5f), qz = z - 4.0f * floorf(z * 0.25f + 0.5f);
  float ball = sqrtf(qx * qx + y * y + qz * qz) - 1.0f;
  return fminf(ball, y + 1.0f);
}
KERNEL ray_march(float *depth, int w, int h, float far) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float dx = (x - 0.5f * w) / h, dy = (0.5f * h - y) / h - 0.1f, scale = 1.0f / sqrtf(dx * dx + dy * dy + 1.0f);
  dx *= scale;
  dy *= scale;
  float dz = scale, t = 0.0f;
  for (int step = 0; step < 96; step++) {
    float d = scene(2.0f + dx * t, 2.0f + dy * t, dz * t);
    if (d < 0.01f || t > far)
      break;
    t += d;
  }
  depth[y * w + x] = fminf(t, far);
}

// Ray tracing: the nearest of some spheres, then a shadow ray.
KERNEL ray_trace(const float4 *spheres, uint8_t *out, int w, int h, int count) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float dx = (x - 0.5f * w) / h, dy = (y - 0.5f * h) / h, dz = 1.0f, inverse = 1.0f / sqrtf(dx * dx + dy * dy + 1.0f);
  dx *= inverse;
  dy *= inverse;
  dz *= inverse;
  float nearest = 1e30f;
  int hit = -1;
  for (int i = 0; i < count; i++) {
    float4 s = spheres[i];
    float b = dx * s.x + dy * s.y + dz * s.z, c = s.x * s.x + s.y * s.y + s.z * s.z - s.w * s.w, d = b * b - c;
    if (d > 0.0f) {
      float t = b - sqrtf(d);
      if (t > 0.0f && t < nearest) {
        nearest = t;
        hit = i;
      }
    }
  }
  float shade = 0.1f;
  if (hit >= 0) {
    float4 s = spheres[hit];
    float px = dx * nearest, py = dy * nearest, pz = dz * nearest;
    float nx = (px - s.x) / s.w, ny = (py - s.y) / s.w, nz = (pz - s.z) / s.w;
    const float lx = 0.48f, ly = -0.64f, lz = -0.6f;
    float light = fmaxf(nx * lx + ny * ly + nz * lz, 0.0f);
    for (int i = 0; i < count && light > 0.0f; i++) {
      float4 o = spheres[i];
      float ox = o.x - px, oy = o.y - py, oz = o.z - pz;
      float b = ox * lx + oy * ly + oz * lz, d = b * b - (ox * ox + oy * oy + oz * oz - o.w * o.w);
      if (i != hit && d > 0.0f && b > 0.0f)
        light = 0.0f;
    }
    shade = 0.2f + 0.8f * light;
  }
  out[y * w + x] = (uint8_t)(255.0f * shade);
}

// A lattice Boltzmann step in two dimensions with nine directions: pull, collide.
__constant__ int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
KERNEL boltzmann(const float *in, float *out, int w, int h, float omega) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float f[9], density = 0.0f, ux = 0.0f, uy = 0.0f;
#pragma unroll
  for (int k = 0; k < 9; k++) {
    int sx = (x - CX[k] + w) % w, sy = (y - CY[k] + h) % h;
    f[k] = in[(k * h + sy) * w + sx];
    density += f[k];
    ux += CX[k] * f[k];
    uy += CY[k] * f[k];
  }
  ux /= density;
  uy /= density;
  float square = 1.5f * (ux * ux + uy * uy);
#pragma unroll
  for (int k = 0; k < 9; k++) {
    float weight = k == 0 ? 4.0f / 9 : k < 5 ? 1.0f / 9 : 1.0f / 36, u = 3.0f * (CX[k] * ux + CY[k] * uy);
    out[(k * h + y) * w + x] = f[k] + omega * (weight * density * (1.0f + u + 0.5f * u * u - square) - f[k]);
  }
}

// Forces between molecules by lists of neighbours, which lie interleaved.
KERNEL molecules(const float4 *positions, const int *neighbours, float4 *forces, int n, int most, float cut) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float4 p = positions[i];
  float fx = 0.0f, fy = 0.0f, fz = 0.0f;
  for (int k = 0; k < most; k++) {
    float4 q = positions[neighbours[k * n + i]];
    float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z, r2 = dx * dx + dy * dy + dz * dz;
    if (r2 < cut) {
      float inverse = 1.0f / r2, r6 = inverse * inverse * inverse, force = r6 * (r6 - 0.5f) * inverse;
      fx += dx * force;
      fy += dy * force;
      fz += dz * force;
    }
  }
  forces[i] = {fx, fy, fz, 0.0f};
}

// Charges of particles to the four points of a grid around each.
KERNEL deposit(const float2 *positions, float *grid, int n, int side) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float2 p = positions[i];
  int x = (int)p.x, y = (int)p.y;
  float ax = p.x - x, ay = p.y - y;
  atomicAdd(&grid[y * side + x], (1 - ax) * (1 - ay));
  atomicAdd(&grid[y * side + x + 1], ax * (1 - ay));
  atomicAdd(&grid[(y + 1) * side + x], (1 - ax) * ay);
  atomicAdd(&grid[(y + 1) * side + x + 1], ax * ay);
}

// Alignment of two sequences in tiles of 16 along diagonals of tiles, a tile's wavefront in shared memory.
KERNEL align(const uint8_t *a, const uint8_t *b, int *score, int n, int diagonal, int first) {
  __shared__ int s[17][17];
  int t = threadIdx.x, by = first + blockIdx.x, bx = diagonal - by, pitch = n + 1;
  int *corner = score + by * 16 * pitch + bx * 16;
  s[0][t + 1] = corner[t + 1];
  s[t + 1][0] = corner[(t + 1) * pitch];
  if (t == 0)
    s[0][0] = corner[0];
  uint8_t mine = a[by * 16 + t];
  __syncthreads();
  for (int d = 0; d < 31; d++) {
    int x = d - t;
    if (x >= 0 && x < 16) {
      int same = mine == b[bx * 16 + x] ? 2 : -1;
      s[t + 1][x + 1] = max(s[t][x] + same, max(s[t][x + 1], s[t + 1][x]) - 1);
    }
    __syncthreads();
  }
  for (int y = 1; y <= 16; y++)
    corner[y * pitch + t + 1] = s[y][t + 1];
}

// Edit distances of pairs of words of at most 32 letters, a row of the table in local memory.
KERNEL edit_distance(const uint8_t *a, const uint8_t *b, const int *lengths, int *out, int pairs) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs)
    return;
  int na = lengths[2 * i], nb = lengths[2 * i + 1], row[33];
  for (int x = 0; x <= nb; x++)
    row[x] = x;
  for (int y = 1; y <= na; y++) {
    int diagonal = row[0];
    row[0] = y;
    uint8_t letter = a[i * 32 + y - 1];
    for (int x = 1; x <= nb; x++) {
      int above = row[x];
      row[x] = min(min(above, row[x - 1]) + 1, diagonal + (letter != b[i * 32 + x - 1]));
      diagonal = above;
    }
  }
  out[i] = row[nb];
}

// The cheapest path through rows of a grid, one row for each launch's CTA-wide tile with ghost columns.
KERNEL cheapest_path(const int *costs, const int *from, int *to, int columns, int row, int rows) {
  constexpr int R = 8;
  __shared__ int now[256], next[256];
  int x = (int)blockIdx.x * (256 - 2 * R) + (int)threadIdx.x - R;
  bool inside = x >= 0 && x < columns;
  now[threadIdx.x] = inside ? from[x] : 0x3fffffff;
  __syncthreads();
  for (int k = 0; k < rows; k++) {
    if (threadIdx.x > 0 && threadIdx.x < 255) {
      int best = min(now[threadIdx.x], min(now[threadIdx.x - 1], now[threadIdx.x + 1]));
      next[threadIdx.x] = inside ? best + costs[(row + k) * columns + x] : 0x3fffffff;
    }
    __syncthreads();
    now[threadIdx.x] = next[threadIdx.x];
    __syncthreads();
  }
  if (inside && threadIdx.x >= R && threadIdx.x < 256 - R)
    to[x] = now[threadIdx.x];
}

// The Julia set of a cubic polynomial: iterations until escape.
KERNEL julia(uint8_t *out, int w, int h, float cr, float ci) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float re = 3.0f * (x - 0.5f * w) / w, im = 2.0f * (y - 0.5f * h) / h;
  int i = 0;
  while (i < 200 && re * re + im * im < 4.0f) {
    float r2 = re * re - im * im, i2 = 2.0f * re * im;
    float next = r2 * re - i2 * im + cr;
    im = r2 * im + i2 * re + ci;
    re = next;
    i++;
  }
  out[y * w + x] = i;
}

// The longest Collatz chain that begins in each thread's share of numbers.
KERNEL collatz(int *out, int each) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, longest = 0;
  for (int k = 0; k < each; k++) {
    uint64_t v = (uint64_t)t * each + k + 1;
    int length = 0;
    while (v != 1) {
      v = v % 2 ? 3 * v + 1 : v / 2;
      length++;
    }
    longest = max(longest, length);
  }
  out[t] = longest;
}
