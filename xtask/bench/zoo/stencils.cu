// Stencils: each point of a grid from its neighbours, in one, two and three dimensions.
#include "zoo.cuh"

// Heat in two dimensions, four neighbours.
KERNEL stencil5(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
    return;
  int i = y * w + x;
  out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
}

// Eight neighbours with three weights.
KERNEL stencil9(const float *in, float *out, int w, int h, float centre, float edge, float corner) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && y > 0 && x < w - 1 && y < h - 1) {
    float edges = in[(y - 1) * w + x] + in[(y + 1) * w + x] + in[y * w + x - 1] + in[y * w + x + 1];
    float corners = in[(y - 1) * w + x - 1] + in[(y - 1) * w + x + 1] + in[(y + 1) * w + x - 1] + in[(y + 1) * w + x + 1];
    out[y * w + x] = centre * in[y * w + x] + edge * edges + corner * corners;
  }
}

// A column of points along z for each thread; what lies behind and ahead stays in registers.
KERNEL stencil7_march(const float *in, float *out, int nx, int ny, int nz, float centre, float side) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
    return;
  int plane = nx * ny, i = plane + y * nx + x;
  float below = in[i - plane], here = in[i];
  for (int z = 1; z < nz - 1; z++, i += plane) {
    float above = in[i + plane];
    out[i] = centre * here + side * (below + above + in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]);
    below = here;
    here = above;
  }
}

// A star of radius 2 in three dimensions.
KERNEL stencil13(const float *in, float *out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
      z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 2 || y < 2 || z < 2 || x >= nx - 2 || y >= ny - 2 || z >= nz - 2)
    return;
  int i = (z * ny + y) * nx + x, plane = nx * ny;
  float sum = 0.4f * in[i];
  for (int r = 1; r <= 2; r++) {
    float weight = r == 1 ? 0.08f : 0.02f;
    sum += weight * (in[i - r] + in[i + r] + in[i - r * nx] + in[i + r * nx] + in[i - r * plane] + in[i + r * plane]);
  }
  out[i] = sum;
}

// A star of radius 4 in three dimensions, as finite differences of seismic waves have it: planes in shared memory, columns in
// registers.
__constant__ float STAR[5] = {-2.847222f, 1.6f, -0.2f, 0.02539683f, -0.00178571f};
KERNEL stencil25(const float *in, float *out, int nx, int ny, int nz) {
  constexpr int R = 4, BX = 32, BY = 8;
  __shared__ float tile[BY + 2 * R][BX + 2 * R];
  int tx = threadIdx.x + R, ty = threadIdx.y + R;
  int x = blockIdx.x * BX + threadIdx.x + R, y = blockIdx.y * BY + threadIdx.y + R;
  int plane = nx * ny, i = y * nx + x;
  float column[2 * R + 1];
#pragma unroll
  for (int k = 0; k < 2 * R; k++)
    column[k + 1] = in[i + k * plane];
  for (int z = R; z < nz - R; z++) {
#pragma unroll
    for (int k = 0; k < 2 * R; k++)
      column[k] = column[k + 1];
    column[2 * R] = in[i + (z + R) * plane];
    __syncthreads();
    tile[ty][tx] = column[R];
    if (threadIdx.y < R) {
      tile[threadIdx.y][tx] = in[i + z * plane - R * nx];
      tile[threadIdx.y + BY + R][tx] = in[i + z * plane + BY * nx];
    }
    if (threadIdx.x < R) {
      tile[ty][threadIdx.x] = in[i + z * plane - R];
      tile[ty][threadIdx.x + BX + R] = in[i + z * plane + BX];
    }
    __syncthreads();
    float sum = 3.0f * STAR[0] * column[R];
#pragma unroll
    for (int r = 1; r <= R; r++)
      sum += STAR[r] * (column[R - r] + column[R + r] + tile[ty][tx - r] + tile[ty][tx + r] + tile[ty - r][tx] + tile[ty + r][tx]);
    out[i + z * plane] = sum;
  }
}

// All 26 neighbours, weights by distance.
KERNEL stencil27(const float *in, float *out, int nx, int ny, int nz, const float *weights) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
      z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1)
    return;
  float sum = 0.0f;
  for (int dz = -1; dz <= 1; dz++)
    for (int dy = -1; dy <= 1; dy++)
      for (int dx = -1; dx <= 1; dx++)
        sum += weights[dz * dz + dy * dy + dx * dx] * in[((z + dz) * ny + y + dy) * nx + x + dx];
  out[(z * ny + y) * nx + x] = sum;
}

// A weighted window of any radius over a line, in shared memory; beyond the ends there are zeros.
KERNEL stencil_radius(const float *in, const float *weights, float *out, int n, int radius) {
  __shared__ float tile[256 + 2 * 64];
  int begin = blockIdx.x * blockDim.x - radius;
  for (int t = threadIdx.x; t < (int)blockDim.x + 2 * radius; t += blockDim.x)
    tile[t] = begin + t >= 0 && begin + t < n ? in[begin + t] : 0.0f;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float sum = 0.0f;
  for (int k = 0; k <= 2 * radius; k++)
    sum += weights[k] * tile[threadIdx.x + k];
  out[i] = sum;
}

// One step of Jacobi's method for Poisson's equation: a tile with its halo in shared memory.
KERNEL jacobi(const float *in, const float *force, float *out, int w, int h) {
  __shared__ float tile[18][18];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  if (x < w && y < h) {
    tile[ty][tx] = in[y * w + x];
    if (threadIdx.x == 0)
      tile[ty][0] = x > 0 ? in[y * w + x - 1] : 0.0f;
    if (threadIdx.x == 15)
      tile[ty][17] = x < w - 1 ? in[y * w + x + 1] : 0.0f;
    if (threadIdx.y == 0)
      tile[0][tx] = y > 0 ? in[(y - 1) * w + x] : 0.0f;
    if (threadIdx.y == 15)
      tile[17][tx] = y < h - 1 ? in[(y + 1) * w + x] : 0.0f;
  }
  __syncthreads();
  if (x < w && y < h)
    out[y * w + x] = 0.25f * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx] - force[y * w + x]);
}

// Electromagnetic waves in two dimensions: the magnetic field from the electric one, then the reverse.
KERNEL fdtd_magnetic(float *hx, float *hy, const float *ez, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w - 1 || y >= h - 1)
    return;
  int i = y * w + x;
  hx[i] -= 0.5f * (ez[i + w] - ez[i]);
  hy[i] += 0.5f * (ez[i + 1] - ez[i]);
}
KERNEL fdtd_electric(float *ez, const float *hx, const float *hy, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w || y >= h)
    return;
  int i = y * w + x;
  ez[i] += 0.5f * (hy[i] - hy[i - 1] - hx[i] + hx[i - w]);
}

// Conway's game on a torus, one byte for each cell.
KERNEL life(const uint8_t *in, uint8_t *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  int left = (x + w - 1) % w, right = (x + 1) % w, up = (y + h - 1) % h, down = (y + 1) % h;
  int around = in[up * w + left] + in[up * w + x] + in[up * w + right] + in[y * w + left] + in[y * w + right] +
               in[down * w + left] + in[down * w + x] + in[down * w + right];
  out[y * w + x] = around == 3 || (around == 2 && in[y * w + x]);
}

// A quantity carried by a flow: each point takes it from where the flow came from, between four points.
KERNEL advect(const float *in, const float *u, const float *v, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  int i = y * w + x;
  float fx = fminf(fmaxf(x - u[i], 0.0f), w - 1.001f), fy = fminf(fmaxf(y - v[i], 0.0f), h - 1.001f);
  int ix = (int)fx, iy = (int)fy;
  float ax = fx - ix, ay = fy - iy;
  const float *from = in + iy * w + ix;
  float top = from[0] + ax * (from[1] - from[0]), bottom = from[w] + ax * (from[w + 1] - from[w]);
  out[i] = top + ay * (bottom - top);
}
