// All-pairs gravity with tiles of 256 bodies in shared memory.
#include "prelude.cuh"

KERNEL nbody(const float4 *bodies, float4 *acceleration, int n, float softening) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = bodies[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int base = 0; base < n; base += 256) {
    tile[threadIdx.x] = bodies[base + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < 256; k++) {
      float4 b = tile[k];
      float dx = b.x - me.x, dy = b.y - me.y, dz = b.z - me.z;
      float d2 = dx * dx + dy * dy + dz * dz + softening;
      float inv = rsqrtf(d2);
      float s = b.w * (inv * inv * inv);
      ax += dx * s;
      ay += dy * s;
      az += dz * s;
    }
    __syncthreads();
  }
  acceleration[i] = float4{ax, ay, az, 0.0f};
}
